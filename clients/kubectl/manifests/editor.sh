#!/bin/sh
# The editor of `kubectl edit` in the session: replaces one colour by another.
sed 's/colour: red/colour: yellow/' "$1" > "$1.new" && mv "$1.new" "$1"
