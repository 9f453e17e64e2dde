#!/usr/bin/env bash
# Tests the packages of the program that PINTLE names, or of a debug build. Each package is made twice, with the same
# bytes. The Debian package is installed on a fresh system that systemd runs, the image is run as a container, the
# chart is applied to a server. The first object is accepted within ten seconds everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "packaging: skipped, $1"; exit 0; }
fail() { echo "packaging: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip 'only root can make the namespaces'
for tool in kubectl python3 unshare; do
  command -v $tool >/dev/null || skip "there is no $tool on the path"
done
program=$(realpath "$(clients/program)")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

digest() { find "$1" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum; }
# Prints the path of a package that is made twice.
make_twice() {
  local path first
  path=$(cargo xtask package "$@")
  first=$(digest "$path")
  cargo xtask package "$@" >/dev/null
  [ "$first" = "$(digest "$path")" ] || fail "$1: two packages of one program differ"
  echo "   $(du -sb "$path" | cut -f1) bytes: $(basename "$path")" >&2
  echo "$path"
}

echo '-- archive'
archive=$(make_twice archive --program "$program")
mkdir "$place/archive"
tar -xzf "$archive" -C "$place/archive" --strip-components=1
cmp "$place/archive/pintle" "$program"
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["components"]' \
  "$place/archive/bill-of-materials.cdx.json"

echo '-- image'
packaging/try-image "$(make_twice image --program "$program")"

echo '-- chart'
chart=$(make_twice chart)
if command -v helm >/dev/null; then
  helm lint --quiet --strict "$chart"
  for form in standalone replicas; do
    packaging/manifests/render $form "$chart" | diff "packaging/manifests/$form.yaml" - ||
      fail "packaging/manifests/$form.yaml differs from the chart: make it anew by packaging/manifests/render"
  done
else
  echo '   there is no helm on the path: the manifests are not compared with the chart'
fi
for form in standalone replicas; do
  PINTLE=$program clients/with-pintle bash -c 'kubectl create namespace pintle &&
    kubectl apply --dry-run=server --validate=strict -f "$0"' "packaging/manifests/$form.yaml" >"$place/applied"
  echo "   $form.yaml: $(grep -c 'server dry run' "$place/applied") objects accepted"
done

echo '-- Debian package'
deb=$(make_twice deb --program "$program")
if command -v debootstrap >/dev/null; then
  # The mirror and the release of this machine.
  read -r mirror release < <(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' | head -1)
  mkdir "$place/root"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,adduser "$release" "$place/root" "$mirror" >"$place/log" 2>&1 ||
    { tail -5 "$place/log" >&2; fail 'no fresh system'; }
  packaging/boot "$place/root" packaging/try-service "$place/root" "$deb"
else
  echo '   there is no debootstrap on the path: the package is not installed'
fi
echo 'packaging: ok'
