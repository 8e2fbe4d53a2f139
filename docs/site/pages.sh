#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages of the documentation: of the site, of lint, and of the test that runs their commands.
echo README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/*/*.md hls/README.md models/demo/README.md tests/fixtures/README.md
