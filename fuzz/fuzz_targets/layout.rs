//! OCI layouts from elsewhere, as a verifier's `--image` and as a base of `build`: this
//! tool's own image, edited. Digests are mostly written again, so that an edit gets past
//! them. Nothing panics, and a layout whose bytes changed has another identity.
#![no_main]

#[path = "../edits.rs"]
mod edits;

use arbitrary::{Arbitrary, Unstructured};
use edits::{Edit, apply};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use oci_image::{BuildOptions, Context, Identity, Recipe, build, read_identity};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tki_evidence::stamp::sha256_hex;

const TAG: &str = "fuzzed:layout";

/// What is done to the layout.
#[derive(Arbitrary, Debug)]
struct Input {
    index: Vec<Edit>,
    manifest: Vec<Edit>,
    config: Vec<Edit>,
    /// Bytes of the layer's archive are changed: where, to what.
    layer: Vec<(u16, u8)>,
    /// A header of the archive is copied to another place.
    headers: Vec<(u8, u8)>,
    cut: Option<u16>,
    /// Digests and sizes are left as they were.
    stale: bool,
    /// The file that says which version this is.
    marker: Option<Vec<u8>>,
}

struct Base {
    folder: PathBuf,
    index: Value,
    manifest: Value,
    config: Value,
    layer: Vec<u8>,
    identity: Identity,
}

fn blob(folder: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().expect("a digest");
    let name = digest.strip_prefix("sha256:").expect("a digest");
    fs::read(folder.join("blobs/sha256").join(name)).expect("a blob")
}

/// Below the directory for what is built, where nothing has to be tidied up.
fn folder() -> PathBuf {
    let folder = PathBuf::from("target/layouts").join(std::process::id().to_string());
    fs::create_dir_all(&folder).expect("a directory");
    folder
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let folder = folder();
        // A small one: the prober itself is nothing that the reader looks into.
        let recipe = b"FROM scratch\nCOPY a /a\nCOPY b /d/b\nENTRYPOINT [\"/a\"]\n";
        let recipe = Recipe::parse("Dockerfile", recipe).expect("a recipe");
        let files = [("a", "one"), ("b", "two")];
        let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let context = Context::memory(BTreeMap::from(files)).expect("a context");
        let options = BuildOptions {
            tag: TAG.to_owned(),
            ..BuildOptions::default()
        };
        let image = build(&recipe, &context, &options).expect("an image");
        let whole = folder.join("whole");
        for (path, bytes) in image.files() {
            let path = whole.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, bytes).expect("a file");
        }
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
        let index = parse(&fs::read(whole.join("index.json")).expect("an index"));
        let manifest = parse(&blob(&whole, &index["manifests"][0]));
        let mut layer = Vec::new();
        GzDecoder::new(&blob(&whole, &manifest["layers"][0])[..])
            .read_to_end(&mut layer)
            .expect("a layer");
        let identity = read_identity(&whole).expect("an identity");
        Base {
            config: parse(&blob(&whole, &manifest["config"])),
            folder: folder.join("edited"),
            index,
            manifest,
            layer,
            identity,
        }
    })
}

/// Writes a blob; gives its digest and size.
fn put(folder: &Path, bytes: &[u8]) -> (Value, Value) {
    let name = sha256_hex(bytes);
    fs::write(folder.join("blobs/sha256").join(&name), bytes).expect("a blob");
    (format!("sha256:{name}").into(), bytes.len().into())
}

/// Makes a descriptor fit again, if there still is one.
fn describe(descriptor: Option<&mut Value>, (digest, size): (Value, Value), stale: bool) {
    if let Some(Value::Object(descriptor)) = descriptor
        && !stale
    {
        descriptor.insert("digest".into(), digest);
        descriptor.insert("size".into(), size);
    }
}

fn archive(input: &Input, base: &Base) -> Vec<u8> {
    let mut layer = base.layer.clone();
    let blocks = layer.len() / 512;
    for (from, to) in input.headers.iter().take(4) {
        let at = |block: u8| usize::from(block) % blocks * 512;
        layer.copy_within(at(*from)..at(*from) + 512, at(*to));
    }
    for (place, byte) in input.layer.iter().take(16) {
        let at = usize::from(*place) % layer.len();
        layer[at] = *byte;
    }
    // Headers whose sum is right are read further.
    for header in layer.chunks_exact_mut(512) {
        if &header[257..262] == b"ustar" {
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    if let Some(cut) = input.cut {
        layer.truncate(usize::from(cut));
    }
    layer
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    let base = base();
    let folder = &base.folder;
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("blobs/sha256")).expect("a directory");
    let layer = archive(&input, base);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&layer).expect("memory");
    let packed = packed.finish().expect("memory");
    let mut config = base.config.clone();
    if !input.stale {
        config["rootfs"]["diff_ids"][0] = format!("sha256:{}", sha256_hex(&layer)).into();
    }
    apply(&mut config, &input.config);
    let mut manifest = base.manifest.clone();
    describe(
        manifest.pointer_mut("/layers/0"),
        put(folder, &packed),
        input.stale,
    );
    let config = put(folder, config.to_string().as_bytes());
    describe(manifest.pointer_mut("/config"), config, input.stale);
    apply(&mut manifest, &input.manifest);
    let mut index = base.index.clone();
    let manifest = put(folder, manifest.to_string().as_bytes());
    describe(index.pointer_mut("/manifests/0"), manifest, input.stale);
    apply(&mut index, &input.index);
    fs::write(folder.join("index.json"), index.to_string()).expect("an index");
    let version = br#"{"imageLayoutVersion":"1.0.0"}"#;
    let marker = input.marker.as_deref().unwrap_or(version);
    fs::write(folder.join("oci-layout"), marker).expect("a marker");

    if let Ok(found) = read_identity(folder) {
        let same = found.diff_ids == base.identity.diff_ids;
        assert!(
            !same || layer == base.layer,
            "another layer has the same diff id"
        );
    }
    let recipe = Recipe::parse("Dockerfile", b"FROM base\nCOPY a /d/c\n").expect("a recipe");
    let files = BTreeMap::from([("a".to_owned(), b"three".to_vec())]);
    let context = Context::memory(files).expect("a context");
    let options = BuildOptions {
        tag: TAG.to_owned(),
        bases: BTreeMap::from([("base".to_owned(), folder.clone())]),
        ..BuildOptions::default()
    };
    if let Err(error) = build(&recipe, &context, &options) {
        assert!(
            !error.to_string().contains('\u{1b}'),
            "an escape got through"
        );
    }
});
