"""From a policy or options to a verified release."""
