#!/bin/sh
# Regenerates ../golden.*.jsonl. Needs a JDK 11 or later, Maven and Maven Central.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mvn -q -B -f pom.xml dependency:build-classpath -Dmdep.outputFile="$tmp/classpath"
java -cp "$(cat "$tmp/classpath")" Golden.java ..
wc -l ../golden.*.jsonl
