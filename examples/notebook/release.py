"""A data frame, released and measured."""

import shoal

patients = shoal.hospital(400, seed=1)
print(shoal.measure(patients, quasi=["zip", "sex", "age"], sensitive=["diag"]))  # noqa: T201

release = shoal.anonymize(
    patients,
    quasi={"zip": shoal.Prefix(5), "sex": "suppress", "age": "range"},
    sensitive=["diag"],
    subject="pid",
    k=5,
    l=2,
    method="mondrian",
    cells="bounds",
    seed=1,
)
print(release.data.head())  # noqa: T201
print(release.report.text())  # noqa: T201
