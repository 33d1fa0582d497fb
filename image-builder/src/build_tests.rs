//! Whole builds: equal inputs, equal bytes; and bases.

use std::collections::BTreeMap;
use std::path::Path;

use super::{BuildOptions, build, build_for};
use crate::testing::write_layout;
use crate::{Context, Image, ImageError, Recipe, read_identity};

const DOCKERFILE: &str = r#"
FROM scratch
COPY --chmod=1777 rootfs/ /
COPY --chmod=555 --chown=5:6 program /bin/program
LABEL b=2 a="one two"
ENV B=2 A=1
USER 58713:58713
WORKDIR /work
STOPSIGNAL SIGTERM
ENTRYPOINT ["/bin/program"]
CMD ["probe"]
"#;

fn context() -> Context {
    let files = [("rootfs/escape/README", "keep out\n"), ("program", "ELF")];
    let own = |(path, text): (&str, &str)| (path.to_owned(), text.as_bytes().to_vec());
    Context::memory(files.map(own).into()).unwrap()
}

fn options() -> BuildOptions {
    BuildOptions {
        epoch: 1_700_000_000,
        tag: "golden:attest".into(),
        bases: BTreeMap::new(),
    }
}

fn golden(architecture: &str) -> Image {
    let recipe = Recipe::parse("Dockerfile", DOCKERFILE.as_bytes()).unwrap();
    build_for(architecture, &recipe, &context(), &options()).unwrap()
}

/// If this fails, every published digest changes: bump the version, say so in
/// the changelog, and only then write the new digests here.
#[test]
fn the_bytes_are_the_ones_we_published() {
    let image = golden("amd64");
    assert_eq!(
        image.diff_ids,
        ["sha256:e37da1fabaae7d0959155c0c6ee101572db77b95c4f9860fbea4cc0563cd27bd"]
    );
    assert_eq!(
        image.config_digest,
        "sha256:18faa7f2e9d24c84d5975541c15a7c973512faf096e691e192170a86cf7efef2"
    );
    assert_eq!(
        image.manifest_digest,
        "sha256:8a298f34556525b36a84916a4ae3fd8faa009a0aa1992ae90abf50383ce68f61"
    );
    assert_eq!(
        golden("arm64").manifest_digest,
        "sha256:a936da2d838e2ba82f6e2cc28ae0da7fe8fea10fd76706c8e9786abf8393255c"
    );
}

#[test]
fn the_configuration_reads_as_written() {
    let image = golden("amd64");
    let path = format!("blobs/sha256/{}", &image.config_digest[7..]);
    let config = String::from_utf8(image.files()[&path].clone()).unwrap();
    let diff_id = &image.diff_ids[0];
    let expected = format!(
        concat!(
            r#"{{"created":"2023-11-14T22:13:20Z","architecture":"amd64","os":"linux","#,
            r#""config":{{"User":"58713:58713","Env":["B=2","A=1"],"#,
            r#""Entrypoint":["/bin/program"],"Cmd":["probe"],"WorkingDir":"/work","#,
            r#""Labels":{{"a":"one two","b":"2"}},"StopSignal":"SIGTERM"}},"#,
            r#""rootfs":{{"type":"layers","diff_ids":["{}"]}},"#,
            r#""history":[{{"created":"2023-11-14T22:13:20Z","created_by":"tki-attest build"}}]}}"#,
        ),
        diff_id
    );
    assert_eq!(config, expected);
}

#[test]
fn epoch_and_tag_must_fit() {
    let recipe = Recipe::parse("Dockerfile", b"FROM scratch").unwrap();
    let late = BuildOptions {
        epoch: 1 << 33,
        ..options()
    };
    let odd = BuildOptions {
        tag: "No Such".into(),
        ..options()
    };
    for options in [late, odd] {
        let error = build(&recipe, &context(), &options).unwrap_err();
        assert_eq!(error.code(), "image.option");
    }
}

#[test]
fn an_image_of_nothing_has_one_empty_layer() {
    let recipe = Recipe::parse("Dockerfile", b"FROM scratch\nCMD [\"x\"]").unwrap();
    let image = build(&recipe, &context(), &options()).unwrap();
    assert_eq!(image.diff_ids.len(), 1);
}

fn over(base: &Path, text: &str) -> Result<Image, ImageError> {
    let recipe = Recipe::parse("Dockerfile", text.as_bytes()).unwrap();
    let mut options = options();
    options.bases.insert("base".into(), base.to_owned());
    build(&recipe, &context(), &options)
}

#[test]
fn base_layers_are_copied_verbatim() {
    let dir = tempfile::tempdir().unwrap();
    let base = golden(crate::config::architecture(std::env::consts::ARCH));
    write_layout(&base, &dir.path().join("base"));
    let layered = over(
        &dir.path().join("base"),
        "FROM base\nCOPY program rel\nUSER 1",
    )
    .unwrap();
    assert_eq!(layered.diff_ids.len(), 2);
    assert_eq!(layered.diff_ids[0], base.diff_ids[0]);
    assert_eq!(layered.layers()[0], base.layers()[0]);
    write_layout(&layered, &dir.path().join("layered"));
    let identity = read_identity(&dir.path().join("layered")).unwrap();
    assert_eq!(identity.diff_ids, layered.diff_ids);
    // Without steps there is no second layer, only another configuration.
    let same = over(&dir.path().join("base"), "FROM base\nLABEL x=y").unwrap();
    assert_eq!(same.diff_ids, base.diff_ids);
    assert_ne!(same.config_digest, base.config_digest);
}

#[test]
fn a_base_must_be_given_and_fit() {
    let dir = tempfile::tempdir().unwrap();
    let error = over(dir.path(), "FROM other").unwrap_err();
    assert_eq!(error.code(), "dockerfile.base");
    write_layout(&golden("pdp11"), dir.path());
    let error = over(dir.path(), "FROM base").unwrap_err();
    assert_eq!(error.code(), "layout.base");
}
