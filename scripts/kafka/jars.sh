#!/bin/sh
# The broker's jars, once, into .cache/kafka/lib (about 50 MB from Maven Central). Needs Java 17 or newer and Maven.
set -eu
cd "$(dirname "$0")/../.."
lib=.cache/kafka/lib
[ -f "$lib/.whole" ] && exit 0
mkdir -p "$lib"
mvn -q -B -f scripts/kafka/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/$lib"
touch "$lib/.whole"
