#!/usr/bin/env bash
# Spark needs Java 17 or newer: found, or installed where this user may, or said what to type.
set -u

version() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1
}

found=$(version)
[ "${found:-0}" -ge 17 ] && exit 0

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_install() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

if command -v apt-get >/dev/null && may_install; then
  echo "installing Java with apt-get"
  package=$(apt-cache search --names-only '^openjdk-(17|21)-jre-headless$' | sort | head -1 | cut -d' ' -f1)
  if [ -z "$package" ]; then
    as_root apt-get update -qq
    package=$(apt-cache search --names-only '^openjdk-(17|21)-jre-headless$' | sort | head -1 | cut -d' ' -f1)
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${package:-openjdk-17-jre-headless}" >/dev/null
elif command -v dnf >/dev/null && may_install; then
  echo "installing Java with dnf"
  as_root dnf install -y -q java-17-openjdk-headless
elif command -v brew >/dev/null; then
  echo "installing Java with brew"
  brew install -q openjdk@17
fi

found=$(version)
[ "${found:-0}" -ge 17 ] && exit 0
cat >&2 <<'SAID'
Spark needs Java 17 or newer, and there is none here. Install it with one of:
  sudo apt-get install openjdk-17-jre-headless     Debian, Ubuntu
  sudo dnf install java-17-openjdk-headless        Fedora, RHEL
  brew install openjdk@17                          macOS
and set JAVA_HOME if `java` is not on the PATH. Then type the same make command again.
SAID
exit 1
