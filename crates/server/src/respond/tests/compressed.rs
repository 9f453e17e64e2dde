//! Lists in gzip.

use super::*;

const FORMS: [Form; 2] = [Form::Object, Form::PartialObjectMetadataList(MetaVersion::V1)];
const ENCODINGS: [Encoding; 4] =
    [Encoding::Json, Encoding::Yaml, Encoding::Protobuf, Encoding::Cbor];

/// Enough objects for several runs; their values do not compress, so that lists have several
/// pieces.
async fn cluster() -> Cluster {
    let names: Vec<String> = (0..1500).map(|n| format!("n{n:04}-of-some-length")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Cluster::with(&names, &"abc\u{1F980}defg".repeat(20)).await
}

impl Cluster {
    /// The bytes of a list in gzip.
    async fn packed(&self, negotiated: Negotiated) -> Bytes {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        let list = self.list(negotiated.form, IncludeObject::Metadata, negotiated).await;
        let packed = compress(list, &headers);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        packed.into_body().collect().await.unwrap().to_bytes()
    }

    /// The bytes of a list without compression.
    async fn plain(&self, negotiated: Negotiated) -> Bytes {
        let list = self.list(negotiated.form, IncludeObject::Metadata, negotiated).await;
        list.into_body().collect().await.unwrap().to_bytes()
    }

    async fn change(&self, name: &str) {
        let target = Target { name: name.into(), ..self.target.clone() };
        let text = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"changed"}}}}"#);
        let body = RequestBody { bytes: text.into(), encoding: Encoding::Json };
        let options = WriteOptions::default();
        self.registry.update(&target, &body, &options, &self.context, &|| Ok(())).await.unwrap();
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let (mut decoder, mut plain) = (flate2::read::GzDecoder::new(packed), Vec::new());
    decoder.read_to_end(&mut plain).unwrap();
    assert!(decoder.into_inner().is_empty(), "bytes behind the body");
    plain
}

#[tokio::test]
async fn lists_of_cached_runs_have_the_same_bytes_as_plain_lists() {
    let cluster = cluster().await;
    for form in FORMS {
        for encoding in ENCODINGS {
            let negotiated = Negotiated { encoding, pretty: false, form };
            let plain = cluster.plain(negotiated).await;
            let packed = cluster.packed(negotiated).await;
            assert!(unpacked(&packed) == plain, "{negotiated:?}");
            assert!(packed.len() < plain.len() / 5, "{negotiated:?}");
            let cached = cluster.runs.len();
            assert!(cluster.packed(negotiated).await == packed, "{negotiated:?}");
            assert_eq!(cluster.runs.len(), cached, "a cached run was compressed again");
        }
    }
}

#[tokio::test]
async fn a_change_compresses_only_its_own_run_again() {
    let cluster = cluster().await;
    let unchanged = cluster.packed(JSON).await;
    let runs = cluster.runs.len();
    assert!((5..50).contains(&runs), "{runs} runs of 700 KB");
    for name in ["n0000-of-some-length", "n0700-of-some-length", "n1499-of-some-length"] {
        cluster.change(name).await;
        let before = cluster.runs.len();
        let packed = cluster.packed(JSON).await;
        // An object that a run ended behind may be smaller now.
        assert!((1..=2).contains(&(cluster.runs.len() - before)), "{name}");
        assert!(packed != unchanged);
        assert!(unpacked(&packed) == cluster.plain(JSON).await, "{name}");
    }
}

#[tokio::test]
async fn cached_runs_take_no_more_memory_than_allowed() {
    const BYTES_MAX: u64 = 400_000;
    let cluster = Cluster { runs: Arc::new(Runs::of(BYTES_MAX)), ..cluster().await };
    for form in FORMS {
        for encoding in ENCODINGS {
            let negotiated = Negotiated { encoding, pretty: false, form };
            let packed = cluster.packed(negotiated).await;
            assert!(unpacked(&packed) == cluster.plain(negotiated).await, "{negotiated:?}");
            let bytes = cluster.runs.bytes();
            assert!((1..=BYTES_MAX).contains(&bytes), "{bytes} bytes after {negotiated:?}");
        }
    }
}

#[tokio::test]
async fn tables_are_compressed_anew_for_their_ages() {
    let cluster = cluster().await;
    let table = Negotiated { form: Form::Table(MetaVersion::V1), ..JSON };
    assert!(unpacked(&cluster.packed(table).await) == cluster.plain(table).await);
    let indented = Negotiated { pretty: true, ..JSON };
    assert!(unpacked(&cluster.packed(indented).await) == cluster.plain(indented).await);
    assert_eq!(cluster.runs.len(), 0);
}
