#!/usr/bin/env bash
# The tests of pages need a real browser: found, or installed where this user may; else they are skipped, and say so.
set -u

there() { [ -n "${PENSTOCK_BROWSER:-}" ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null; }
there && exit 0

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_install() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

if command -v apt-get >/dev/null && may_install; then
  echo "installing Chromium with apt-get"
  install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
  install 2>/dev/null || { as_root apt-get update -qq && install; }
elif command -v dnf >/dev/null && may_install; then
  echo "installing Chromium with dnf"
  as_root dnf install -y -q chromium
fi

there || echo "there is no Chromium, and none could be installed: the tests of pages will be skipped" >&2
exit 0
