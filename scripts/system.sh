#!/bin/sh
# System parts that some tests need: a browser, PostgreSQL, Java and the jars of a real Kafka broker. Where we may not install,
# those tests skip and say so; with SHOAL_REQUIRE_SYSTEM=1 a missing part is a failure.
set -u
cd "$(dirname "$0")/.."

missing=""
for part in chromium:chromium java:default-jre-headless mvn:maven pg_ctlcluster:postgresql; do
  command -v "${part%%:*}" >/dev/null 2>&1 || missing="$missing ${part##*:}"
done

if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system parts:$missing"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
  else
    echo "not installed, and not allowed to install:$missing"
  fi
fi

fail=0
for part in chromium java mvn pg_ctlcluster; do
  command -v "$part" >/dev/null 2>&1 && continue
  echo "missing: $part (the tests that need it will skip)"
  fail=1
done
if command -v java >/dev/null 2>&1 && command -v mvn >/dev/null 2>&1; then
  sh scripts/kafka/jars.sh || { echo "missing: the jars of Apache Kafka (the tests that need them will skip)"; fail=1; }
  [ -x .venv/bin/python ] && .venv/bin/python -m scripts.kafka.broker --warm  # only saves time later
fi
[ "${SHOAL_REQUIRE_SYSTEM:-0}" = 1 ] && exit $fail
exit 0
