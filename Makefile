# Thin on purpose: each target says what to run, nothing more. On a fresh Debian
# machine with a Rust toolchain and root, `make attest` and `make test` each work
# alone and do all their set-up.

TARGET := x86_64-unknown-linux-gnu
TEST_PACKAGES := skopeo umoci jq python3-jsonschema python3-venv strace binutils bsdutils util-linux \
	iproute2 openssh-client openssh-server openssl podman uidmap runc crun bubblewrap catatonit postgresql shellcheck \
	qemu-system-x86 busybox-static apparmor procps runsc golang-github-opencontainers-image-spec-dev

# Where tools of cargo's are installed that are missing.
TOOLS := $(CURDIR)/target/tools

.PHONY: all attest check test golden matrix lint deny bench fuzz image image-context release schema clean

all: attest

# Build everything and attest on this machine, for development: on Docker if one
# answers, else Podman, else the engine that is built in. Nothing is installed.
attest:
	cargo build --profile attest --locked
	$${CARGO_TARGET_DIR:-target}/attest/tki-attest run --venue dev

test:
	scripts/with-engines --packages "$(TEST_PACKAGES)" sh -ec \
		'scripts/python-tools "$${CARGO_TARGET_DIR:-target}/venv"; \
		scripts/other-kernel "$${CARGO_TARGET_DIR:-target}/kernel"; \
		scripts/shipped-profiles "$${CARGO_TARGET_DIR:-target}/profiles"; cargo test --workspace --locked'

# The loop for every edit: format, lints, and all tests that need no root, no engine, no
# network and no package.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	TKI_SWEEP=101 cargo test --workspace --locked --lib --test offline --test refusals
	cargo test --workspace --locked --doc

# Record the bundles that those tests read anew, by runs on the Docker Engine of this machine,
# and what a person reads of them. Needed after every change of the inspector.
golden:
	cargo build --locked
	scripts/with-engines scripts/golden "$${CARGO_TARGET_DIR:-target}/debug/tki-attest" tests/golden tests/packets
	INSTA_UPDATE=always cargo test --locked --test offline -- shown

# The 45 acceptance tests of the inspector, as root with a Docker Engine: exactly the functions
# that inspector/data/matrix-45.json binds them to, with result and proof of each.
matrix:
	scripts/with-engines --packages "strace binutils python3" scripts/matrix

lint:
	scripts/with-engines --packages shellcheck shellcheck scripts/with-engines scripts/golden scripts/python-tools scripts/other-kernel scripts/shipped-profiles fuzz/prepare .ci/run \
		src/packet/kubernetes-collect.sh tests/harmless/machine.sh tests/harmless/battery.sh
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package tki-prober --bin tki-prober --features freestanding \
		--profile inside --target $(TARGET) --locked -- -D warnings
	cargo clippy --package tki-inspector --bin tki-inspector --features freestanding \
		--profile inside --target $(TARGET) --locked -- -D warnings
	cargo clippy --package tki-verify-freestanding --features freestanding \
		--profile inside --target $(TARGET) --locked -- -D warnings

# Licences, sources, and no crate in two versions without a reason (deny.toml).
deny:
	PATH="$(TOOLS)/bin:$$PATH" sh -c 'command -v cargo-deny' || \
		cargo install cargo-deny --locked --root "$(TOOLS)"
	PATH="$(TOOLS)/bin:$$PATH" cargo deny --locked check licenses bans sources

# Measured side by side with peers, as ratios.
bench:
	scripts/with-engines --packages "python3-venv podman runc bubblewrap openssl" sh -ec \
		'scripts/python-tools "$${CARGO_TARGET_DIR:-target}/venv"; cargo bench --locked --bench attest --bench inspect --bench verify'

# So many seconds of the fuzzer on each target: the whole of verify, OCI layouts, profiles,
# files of routes, evidence packets. cargo-fuzz is installed below the target directory if there is none.
FUZZ_SECONDS := 600
FUZZ_TARGETS := verify layout profile routes packet

fuzz:
	cargo build --release --locked
	rm -rf fuzz/bundle
	scripts/with-engines --packages g++ fuzz/prepare target/release/tki-attest fuzz/bundle
	PATH="$(TOOLS)/bin:$$PATH" sh -c 'command -v cargo-fuzz' || \
		cargo install cargo-fuzz --locked --root "$(TOOLS)"
	cd fuzz && export PATH="$(TOOLS)/bin:$$PATH" TKI_FUZZ_BUNDLE=bundle RUSTC_BOOTSTRAP=1 && \
		for target in $(FUZZ_TARGETS); do \
			mkdir -p "corpus/$$target" "seeds/$$target"; \
			cargo fuzz run --sanitizer none "$$target" "corpus/$$target" "seeds/$$target" -- \
				-max_total_time=$(FUZZ_SECONDS) -len_control=0 -max_len=4096 || exit; \
		done

# The image as an OCI layout and as an archive for `docker load`.
image:
	cargo build --release --locked
	mkdir -p dist
	target/release/tki-attest build --layout dist/image --archive dist/tki-inspector.tar

# What `docker build -f image/Dockerfile.sandbox dist/context` needs.
image-context: image
	rm -rf dist/context
	mkdir -p dist/context
	cp -r image/rootfs dist/context/rootfs
	mkdir -p dist/context/rootfs/volumes/in dist/context/rootfs/volumes/out
	tar -xOf dist/tki-inspector.tar "$$(jq -r '"blobs/sha256/" + (.layers[0].digest | ltrimstr("sha256:"))' \
		"dist/image/blobs/sha256/$$(jq -r '.manifests[0].digest | ltrimstr("sha256:")' dist/image/index.json)")" \
		| tar -xzC dist/context tki-prober tki-inspector
	chmod 755 dist/context/tki-prober dist/context/tki-inspector

# One fully static executable: all that an operator needs.
release:
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target $(TARGET)
	mkdir -p dist
	cp target/$(TARGET)/release/tki-attest dist/tki-attest
	cd dist && sha256sum tki-attest > tki-attest.sha256

# Write the JSON Schemas and the table of fields again after a change of the types, and the
# table of imports in ARCHITECTURE.md after a change of src/walls/rules.rs.
schema:
	TKI_WRITE_SCHEMAS=1 cargo test --quiet --package tki-evidence --features std -- schema fields
	TKI_WRITE_SCHEMAS=1 cargo test --quiet --package tki-inspector --features std -- schema
	TKI_WRITE_SCHEMAS=1 cargo test --quiet --package tki-attest --lib -- walls::tests::the_table_is_the_one_that_is_printed
	TKI_WRITE_SCHEMAS=1 cargo test --quiet --test offline -- documents::inspector::the_tables

clean:
	cargo clean
	rm -rf dist
