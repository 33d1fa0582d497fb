# Thin on purpose: each target says what to run, nothing more. On a fresh Debian
# machine with a Rust toolchain and root, `make attest` and `make test` each work
# alone and do all their set-up.

TARGET := x86_64-unknown-linux-gnu
TEST_PACKAGES := skopeo umoci jq python3-jsonschema python3-venv strace binutils bsdutils util-linux \
	iproute2 openssh-client openssh-server openssl podman uidmap runc crun bubblewrap catatonit postgresql shellcheck \
	qemu-system-x86 busybox-static apparmor procps runsc golang-github-opencontainers-image-spec-dev

.PHONY: all attest check test lint bench fuzz image image-context release schema clean

all: attest

# Build everything and attest on this machine, for development: on Docker if one
# answers, else Podman, else the engine that is built in. Nothing is installed.
attest:
	cargo build --release --locked
	target/release/tki-attest run --venue dev

test:
	scripts/with-engines --packages "$(TEST_PACKAGES)" sh -ec \
		'scripts/python-tools "$${CARGO_TARGET_DIR:-target}/venv"; \
		scripts/other-kernel "$${CARGO_TARGET_DIR:-target}/kernel"; \
		scripts/shipped-profiles "$${CARGO_TARGET_DIR:-target}/profiles"; cargo test --workspace --locked'

# The loop for every edit: needs no root, no engine and no package.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --lib --locked

lint:
	scripts/with-engines --packages shellcheck shellcheck scripts/with-engines scripts/python-tools scripts/other-kernel scripts/shipped-profiles fuzz/prepare .ci/run \
		src/packet/kubernetes-collect.sh tests/harmless/machine.sh tests/harmless/battery.sh
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package tki-inspector --bin tki-inspector --features freestanding \
		--profile inspector --target $(TARGET) --locked -- -D warnings
	cargo clippy --package tki-verify-freestanding --features freestanding \
		--profile inspector --target $(TARGET) --locked -- -D warnings

# Measured side by side with peers, as ratios.
bench:
	scripts/with-engines --packages "python3-venv podman runc bubblewrap" sh -ec \
		'scripts/python-tools "$${CARGO_TARGET_DIR:-target}/venv"; cargo bench --locked --bench attest --bench verify'

# So many seconds of the fuzzer on each target: the whole of verify, OCI layouts, profiles,
# files of routes. cargo-fuzz is installed below the target directory if there is none.
FUZZ_SECONDS := 600
FUZZ_TARGETS := verify layout profile routes
FUZZ_TOOLS := $(CURDIR)/target/tools

fuzz:
	cargo build --release --locked
	rm -rf fuzz/bundle
	scripts/with-engines --packages g++ fuzz/prepare target/release/tki-attest fuzz/bundle
	PATH="$(FUZZ_TOOLS)/bin:$$PATH" sh -c 'command -v cargo-fuzz' || \
		cargo install cargo-fuzz --locked --root "$(FUZZ_TOOLS)"
	cd fuzz && export PATH="$(FUZZ_TOOLS)/bin:$$PATH" TKI_FUZZ_BUNDLE=bundle RUSTC_BOOTSTRAP=1 && \
		for target in $(FUZZ_TARGETS); do \
			cargo fuzz run --sanitizer none "$$target" -- \
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
		| tar -xzO tki-inspector > dist/context/tki-inspector
	chmod 755 dist/context/tki-inspector

# One fully static executable: all that an operator needs.
release:
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target $(TARGET)
	mkdir -p dist
	cp target/$(TARGET)/release/tki-attest dist/tki-attest
	cd dist && sha256sum tki-attest > tki-attest.sha256

# Write the JSON Schemas and the table of fields again after a change of the types.
schema:
	TKI_WRITE_SCHEMAS=1 cargo test --quiet --package tki-evidence --features std -- schema fields

clean:
	cargo clean
	rm -rf dist
