#!/usr/bin/env bash
# Tests the packages of the program that PINTLE names, or of a debug build. Each package is made twice, with the same
# bytes. The Debian package is installed on a fresh system that systemd runs, the image is run as a container, the
# chart is applied to a server. The first object is accepted within ten seconds everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { clients/skipped packaging "$1"; exit; }
fail() { echo "packaging: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip 'only root can make the namespaces'
for tool in kubectl python3 unshare; do
  command -v $tool >/dev/null || skip "there is no $tool on the path"
done
program=$(realpath "$(clients/program)")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

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

echo '-- program'
echo "   $(stat -c %s "$program") bytes"
if readelf --program-headers --wide "$program" | grep -q INTERP; then
  echo '   it has shared libraries, so it is not as it is packaged'
else
  # The bytes of the program depend on no path, so another checkout makes the same.
  for path in "$PWD" "${CARGO_HOME:-$HOME/.cargo}"; do
    ! grep -qF "$path/" "$program" || fail "the program has the path $path in it"
  done
fi

echo '-- archive'
archive=$(make_twice archive --program "$program")
mkdir "$scratch/archive"
since=$(date +%s%3N)
tar -xzf "$archive" -C "$scratch/archive" --strip-components=1
PINTLE=$scratch/archive/pintle SINCE=$since clients/with-pintle packaging/first-object kubectl
cmp "$scratch/archive/pintle" "$program"
for file in README.md LICENSE THIRD-PARTY-LICENSES man/man1/pintle-serve.1 completions/pintle.{bash,zsh,fish}; do
  [ -s "$scratch/archive/$file" ] || fail "the archive has no $file"
done
python3 - "$scratch/archive/bill-of-materials.cdx.json" <<'PYTHON'
import json, sys
bill = json.load(open(sys.argv[1]))
references = [component["bom-ref"] for component in bill["components"]]
assert len(references) == len(set(references)) > 100
assert all(d["ref"] in references and set(d["dependsOn"]) <= set(references) for d in bill["dependencies"])
PYTHON

echo '-- image'
packaging/try-image "$(make_twice image --program "$program")"

echo '-- chart'
chart=$(make_twice chart)
if helm=$(packaging/go-tool helm helm.sh/helm/v3/cmd/helm@v3.22.0); then
  "$helm" lint --quiet --strict "$chart"
  PINTLE=$program clients/with-pintle packaging/try-chart "$helm" "$chart"
  PINTLE=$program clients/with-etcd clients/with-pintle packaging/try-replicas "$helm" "$chart"
  for form in standalone replicas; do
    HELM=$helm packaging/manifests/render $form "$chart" | diff "packaging/manifests/$form.yaml" - ||
      fail "packaging/manifests/$form.yaml differs from the chart: make it anew by packaging/manifests/render"
  done
else
  clients/skipped 'packaging: chart' 'there is no Helm'
fi
for form in standalone replicas; do
  PINTLE=$program clients/with-pintle bash -c 'kubectl create namespace pintle &&
    kubectl apply --dry-run=server --validate=strict -f "$0"' "packaging/manifests/$form.yaml" >"$scratch/applied"
  echo "   $form.yaml: $(grep -c 'server dry run' "$scratch/applied") objects accepted"
done

echo '-- Debian package'
deb=$(make_twice deb --program "$program")
if command -v mmdebstrap >/dev/null; then
  # The mirror and the release of this machine.
  read -r mirror release < <(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' | head -1)
  mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,adduser "$release" "$scratch/root" "$mirror" 2>"$scratch/log" ||
    { tail -5 "$scratch/log" >&2; fail 'no fresh system'; }
  packaging/boot "$scratch/root" packaging/try-service "$scratch/root" "$deb"
else
  clients/skipped 'packaging: Debian package' 'there is no mmdebstrap on the path'
fi
echo 'packaging: ok'
