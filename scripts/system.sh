#!/bin/sh
# System parts that some tests need. Where we may not install, those tests skip and say so;
# with SHOAL_REQUIRE_SYSTEM=1 a missing part is a failure.
set -u

missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"

if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system parts:$missing"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
  else
    echo "not installed, and not allowed to install:$missing"
  fi
fi

for part in $missing; do
  command -v "$part" >/dev/null 2>&1 && continue
  echo "missing: $part (the tests that need it will skip)"
  [ "${SHOAL_REQUIRE_SYSTEM:-0}" = 1 ] && exit 1
done
exit 0
