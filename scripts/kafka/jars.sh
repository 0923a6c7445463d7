#!/bin/sh
# The jars of the broker and of the schema registry, once, into .cache/kafka (about 50 and 140 MB from Maven Central).
# Needs Java 17 or newer and Maven.
set -eu
cd "$(dirname "$0")/../.."
lib=.cache/kafka/lib
if [ ! -f "$lib/.whole" ]; then
  mkdir -p "$lib"
  mvn -q -B -f scripts/kafka/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/$lib"
  touch "$lib/.whole"
fi
registry=.cache/kafka/registry
if [ ! -f "$registry/.whole" ]; then
  mkdir -p "$registry"
  part=io.apicurio:apicurio-registry-app:2.5.11.Final:zip:all
  mvn -q -B dependency:copy -Dartifact="$part" -DoutputDirectory="$PWD/$registry"
  # python, because not every machine has unzip
  python3 -m zipfile -e "$registry"/apicurio-registry-app-*.zip "$registry"
  rm -f "$registry"/apicurio-registry-app-*.zip
  touch "$registry/.whole"
fi
