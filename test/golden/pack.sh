#!/bin/sh
# pack.sh ARCHIVE FOLDER - packs the golden files of FOLDER; the same files make the same bytes. To change some, unpack them first:
#     mkdir new && tar xzf test/golden/models.tar.gz -C new && ..  && test/golden/pack.sh test/golden/models.tar.gz new
set -eu
tar -C "$2" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rwX,go=rX -cf - . | gzip -9n >"$1"
