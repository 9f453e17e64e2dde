use std::io::Read;
use std::sync::Arc;

use http::header::ACCEPT_ENCODING;
use http_body_util::BodyExt;
use pintle_kinds::RuntimeConfig;
use pintle_meta::{GroupResource, GroupVersionResource};
use pintle_registry::admission::AdmitAll;
use pintle_registry::request::{
    Body as RequestBody, Context, ListOptions, Now, Refusal, Target, Warnings, WriteOptions,
};
use pintle_registry::{Options, Registry, Resource};

use super::*;

mod compressed;

use crate::negotiation::{Form, MetaVersion};
use crate::options::IncludeObject;

const JSON: Negotiated = Negotiated { encoding: Encoding::Json, pretty: false, form: Form::Object };

/// A registry in memory with some ConfigMaps in the namespace `t`.
struct Cluster {
    registry: Registry,
    target: Target,
    runs: Arc<Runs>,
    context: Context,
}

impl Cluster {
    async fn with(names: &[&str], data: &str) -> Self {
        let options = Options {
            store: Box::new(pintle_store::memory(u64::MAX).unwrap()),
            admission: Arc::new(AdmitAll),
            entropy: |bytes| bytes.fill(7),
            garbage_collection: false,
            history_bytes_max: 1 << 20,
            encodings_bytes_max: 1 << 20,
        };
        let definitions = pintle_kinds::definitions(&RuntimeConfig::default());
        let registry = Registry::open(options, definitions).await.unwrap();
        let name = GroupVersionResource::new("", "v1", "configmaps");
        let resource = registry.resource(&name).unwrap();
        let target =
            Target { resource, namespace: "t".into(), name: "".into(), subresource: "".into() };
        let now = Now { unix_micros: 1_000_000_000 };
        let context = Context {
            now,
            user: Arc::default(),
            verb: None,
            user_agent: "test/1".into(),
            warnings: Warnings::default(),
            timing: Arc::default(),
            refusal: Refusal::default(),
            recorder: None,
        };
        for name in names {
            let text = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{data}"}}}}"#);
            let body = RequestBody { bytes: text.into(), encoding: Encoding::Json };
            let options = WriteOptions::default();
            registry.create(&target, &body, &options, &context).await.unwrap();
        }
        Self { registry, target, runs: Arc::new(Runs::new()), context }
    }

    fn rendering(&self, form: Form, include: IncludeObject) -> Rendering {
        let resource: Arc<Resource> = self.target.resource.clone();
        let printer = resource.printer.clone();
        Rendering { resource, printer, form, include, now: 1_090 }
    }

    async fn list(&self, form: Form, include: IncludeObject, negotiated: Negotiated) -> Response {
        let found = self.registry.list(&self.target, &ListOptions::default()).await.unwrap();
        list(found, &self.rendering(form, include), negotiated, &self.runs).await.unwrap()
    }

    async fn get(&self, form: Form) -> Result<Response, Status> {
        let target = Target { name: "a".into(), ..self.target.clone() };
        let found = self.registry.get(&target, "").await.unwrap();
        outcome(&found, &self.rendering(form, IncludeObject::Metadata), JSON)
    }
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The response's text without UIDs, which differ between runs.
async fn stable(response: Response) -> String {
    let tree = json::parse(text(response).await.as_bytes()).unwrap();
    let mut text = json::to_string(&tree);
    while let Some(at) = text.find(r#","uid":""#) {
        text.replace_range(at..at + r#","uid":"""#.len() + 36, "");
    }
    text
}

#[tokio::test]
async fn a_list_in_json_contains_the_stored_bytes() {
    let cluster = Cluster::with(&["a", "b"], "v").await;
    let list = text(cluster.list(Form::Object, IncludeObject::Metadata, JSON).await).await;
    // LIST-01 … LIST-03: items have no `kind`, because the list's `kind` implies it
    let head = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[{"metadata":{"name":"a","#;
    assert!(list.starts_with(head), "{list}");
    assert!(list.ends_with("\"data\":{\"k\":\"v\"}}]}\n"), "{list}");
    assert_eq!(list.matches(r#""kind""#).count(), 1);

    let empty = Cluster::with(&[], "").await;
    let list = text(empty.list(Form::Object, IncludeObject::Metadata, JSON).await).await;
    assert!(list.ends_with("\"items\":[]}\n"), "{list}");
}

#[tokio::test]
async fn a_long_list_is_sent_in_chunks() {
    let names: Vec<String> = (0..40).map(|n| format!("n{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cluster = Cluster::with(&names, &"x".repeat(10_000)).await;
    let response = cluster.list(Form::Object, IncludeObject::Metadata, JSON).await;
    assert_eq!(response.body().len(), None);
    let tree = json::parse(text(response).await.as_bytes()).unwrap();
    let items = tree.get("items").unwrap().as_array().unwrap();
    let found: Vec<&str> = items.iter().map(pintle_meta::object::name).collect();
    assert_eq!(found, names);
}

#[tokio::test]
async fn large_objects_are_sent_without_copying_their_json() {
    let cluster = Cluster::with(&["a", "b"], &"x".repeat(200_000)).await;
    let stored = cluster.registry.list(&cluster.target, &ListOptions::default()).await.unwrap();
    let stored: Vec<_> = stored.objects.iter().map(|object| object.json().as_ptr_range()).collect();
    let mut body = cluster.list(Form::Object, IncludeObject::Metadata, JSON).await.into_body();
    let (mut whole, mut shared) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let piece = frame.unwrap().into_data().unwrap();
        let start = piece.as_ptr();
        shared += usize::from(stored.iter().any(|range| range.contains(&start)));
        whole.extend_from_slice(&piece);
    }
    assert_eq!(shared, 2);
    let tree = json::parse(&whole).unwrap();
    let items = tree.get("items").unwrap().as_array().unwrap();
    let found: Vec<&str> = items.iter().map(pintle_meta::object::name).collect();
    assert_eq!(found, ["a", "b"]);
    assert!(items.iter().all(|item| item.get("kind").is_none()));
}

#[tokio::test]
async fn long_responses_are_compressed_if_the_client_accepts_it() {
    let cluster = Cluster::with(&["a", "b"], &"x".repeat(100_000)).await;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let list = || cluster.list(Form::Object, IncludeObject::Metadata, JSON);
    // CMP-01
    let packed = compress(list().await, &headers);
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    assert_eq!(packed.headers()[VARY], "Accept-Encoding");
    let bytes = packed.into_body().collect().await.unwrap().to_bytes();
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, text(list().await).await);
    // CMP-03: short responses are not compressed, and none is for a client that does not accept
    // gzip
    assert!(!compress(list().await, &HeaderMap::new()).headers().contains_key(CONTENT_ENCODING));
    let short = compress(cluster.get(Form::Object).await.unwrap(), &headers);
    assert!(!short.headers().contains_key(CONTENT_ENCODING));
}

#[tokio::test]
async fn tables_have_columns_and_rows() {
    let cluster = Cluster::with(&["a"], "v").await;
    let form = Form::Table(MetaVersion::V1);
    // TBL-01, TBL-04, OAS-14
    let table = stable(cluster.list(form, IncludeObject::None, JSON).await).await;
    assert!(table.contains(r#""apiVersion":"meta.k8s.io/v1""#), "{table}");
    assert!(table.contains(r#""rows":[{"cells":["a",1,"90s"],"object":null}]"#), "{table}");
    assert!(table.contains(r#""format":"name","name":"Name","priority":0,"type":"string""#));
    let table = stable(cluster.list(form, IncludeObject::Metadata, JSON).await).await;
    assert!(table.contains(r#""kind":"PartialObjectMetadata""#) && !table.contains(r#""data":{"#));
    let table = stable(cluster.list(form, IncludeObject::Object, JSON).await).await;
    assert!(table.contains(r#""data":{"k":"v"},"kind":"ConfigMap""#), "{table}");
    // TBL-02, TBL-05
    let one = stable(cluster.get(Form::Table(MetaVersion::V1Beta1)).await.unwrap()).await;
    assert!(one.contains(r#""apiVersion":"meta.k8s.io/v1beta1""#), "{one}");
    assert!(one.contains(r#""metadata":{"resourceVersion":"1"},"rows":[{"cells":["a","#), "{one}");
}

#[tokio::test]
async fn partial_object_metadata_has_only_metadata() {
    let cluster = Cluster::with(&["a"], "v").await;
    // OAS-13
    let form = Form::PartialObjectMetadataList(MetaVersion::V1);
    let list = text(cluster.list(form, IncludeObject::Metadata, JSON).await).await;
    let head = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","#;
    assert!(list.starts_with(head) && !list.contains("data\":{\"k"), "{list}");
    let one = text(cluster.get(Form::PartialObjectMetadata(MetaVersion::V1)).await.unwrap()).await;
    assert!(one.starts_with(r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","#), "{one}");
    let refused = cluster.get(form).await.err().unwrap();
    assert_eq!(refused.code, 406);
}

#[tokio::test]
async fn indented_json_and_yaml_equal_json() {
    let cluster = Cluster::with(&["a", "b"], "v").await;
    let list = |negotiated| cluster.list(Form::Object, IncludeObject::Metadata, negotiated);
    let plain = json::parse(text(list(JSON).await).await.as_bytes()).unwrap();
    let pretty = text(list(Negotiated { pretty: true, ..JSON }).await).await;
    assert!(pretty.starts_with("{\n  \"kind\": \"ConfigMapList\",\n"), "{pretty}");
    assert_eq!(json::parse(pretty.as_bytes()).unwrap(), plain);
    let yaml = list(Negotiated { encoding: Encoding::Yaml, ..JSON }).await;
    assert_eq!(yaml.headers()[CONTENT_TYPE], "application/yaml"); // MT-07
    assert_eq!(yaml::parse(text(yaml).await.as_bytes()).unwrap(), plain);
}

#[tokio::test]
async fn protobuf_has_the_same_objects() {
    // MT-08, MT-10, MT-12, OAS-13
    let cluster = Cluster::with(&["a", "b"], "v").await;
    let messages = Negotiated { encoding: Encoding::Protobuf, ..JSON };
    let check = async |form, type_name: &str, api_version: &str| {
        let list = cluster.list(form, IncludeObject::Metadata, messages).await;
        assert_eq!(list.headers()[CONTENT_TYPE], "application/vnd.kubernetes.protobuf");
        let bytes = list.into_body().collect().await.unwrap().to_bytes();
        let schema = pintle_schema::builtin();
        let ty = schema.find(type_name).unwrap();
        let found = pintle_schema::protobuf::decode(schema, ty, &bytes).unwrap();
        assert_eq!(found.str_at(&["apiVersion"]), Some(api_version), "{type_name}");
        let items = found.get("items").and_then(pintle_value::Value::as_array).unwrap();
        let names: Vec<_> = items.iter().map(|i| i.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, [Some("a"), Some("b")], "{type_name}");
        items[0].get("data").is_some()
    };
    assert!(check(Form::Object, "io.k8s.api.core.v1.ConfigMapList", "v1").await);
    let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList";
    let form = Form::PartialObjectMetadataList(MetaVersion::V1);
    assert!(!check(form, metadata, "meta.k8s.io/v1").await);

    let not_found = Status::not_found(&GroupResource::new("", "pods"), "grafana");
    let bytes = status(&not_found, messages).into_body().collect().await.unwrap().to_bytes();
    assert!(bytes.starts_with(b"k8s\0\n\x0c\n\x02v1\x12\x06Status"), "{bytes:?}");
}

#[tokio::test]
async fn errors_are_statuses() {
    // ST-06, ST-16, ST-17
    let not_found = Status::not_found(&GroupResource::new("", "pods"), "grafana");
    assert_eq!(
        text(status(&not_found, JSON)).await,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
         \"message\":\"pods \\\"grafana\\\" not found\",\"reason\":\"NotFound\",\
         \"details\":{\"name\":\"grafana\",\"kind\":\"pods\"},\"code\":404}\n"
    );
    // ST-11, ST-19
    let full = status(&Status::too_many_requests("slow down", 3), JSON);
    assert_eq!(
        (full.status().as_u16(), &full.headers()[RETRY_AFTER]),
        (429, &"3".parse().unwrap())
    );
}

async fn bytes(response: Response) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

#[tokio::test]
async fn a_list_is_equal_in_each_encoding_and_form() {
    const FORMS: [Form; 5] = [
        Form::Object,
        Form::PartialObjectMetadataList(MetaVersion::V1),
        Form::PartialObjectMetadataList(MetaVersion::V1Beta1),
        Form::Table(MetaVersion::V1),
        Form::Table(MetaVersion::V1Beta1),
    ];
    let long = "word ".repeat(40);
    for names in [&[][..], &["a"], &["a", "b", "c"]] {
        let cluster = Cluster::with(names, &long).await;
        for form in FORMS {
            let list = async |encoding| {
                let negotiated = Negotiated { encoding, ..JSON };
                bytes(cluster.list(form, IncludeObject::Object, negotiated).await).await
            };
            let tree = json::parse(&list(Encoding::Json).await).unwrap();
            let mut text = Vec::new();
            yaml::write(&tree, &mut text);
            // The first round encodes; the second takes encodings from the cache.
            for _ in 0..2 {
                assert_eq!(
                    cbor::parse(&list(Encoding::Cbor).await).as_ref(),
                    Ok(&tree),
                    "{form:?}"
                );
                let found = String::from_utf8(list(Encoding::Yaml).await).unwrap();
                assert_eq!(found, String::from_utf8(text.clone()).unwrap(), "{form:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_object_is_equal_in_each_encoding_and_form() {
    const FORMS: [Form; 4] = [
        Form::Object,
        Form::PartialObjectMetadata(MetaVersion::V1),
        Form::PartialObjectMetadata(MetaVersion::V1Beta1),
        Form::Table(MetaVersion::V1),
    ];
    let cluster = Cluster::with(&["a"], &"word ".repeat(40)).await;
    let target = Target { name: "a".into(), ..cluster.target.clone() };
    let found = cluster.registry.get(&target, "").await.unwrap();
    for form in FORMS {
        let rendering = cluster.rendering(form, IncludeObject::Metadata);
        let get = |encoding| outcome(&found, &rendering, Negotiated { encoding, ..JSON }).unwrap();
        let tree = json::parse(&bytes(get(Encoding::Json)).await).unwrap();
        let mut text = Vec::new();
        yaml::write(&tree, &mut text);
        for _ in 0..2 {
            assert_eq!(cbor::parse(&bytes(get(Encoding::Cbor)).await).as_ref(), Ok(&tree));
            assert_eq!(bytes(get(Encoding::Yaml)).await, text, "{form:?}");
        }
    }
}

#[tokio::test]
async fn cached_table_rows_show_the_current_age() {
    let cluster = Cluster::with(&["a"], "v").await;
    let found = cluster.registry.list(&cluster.target, &ListOptions::default()).await.unwrap();
    for (now, age) in [(1_090, "90s"), (1_600, "10m"), (1_090, "90s")] {
        let form = Form::Table(MetaVersion::V1);
        let rendering = Rendering { now, ..cluster.rendering(form, IncludeObject::None) };
        let items = found.objects.iter().cloned().map(Item::Stored).collect();
        let table = collection(b"{}", items, &rendering, JSON, &cluster.runs);
        let table = text(table.await.unwrap()).await;
        let row = format!(r#""rows":[{{"cells":["a",1,"{age}"],"object":null}}]"#);
        assert!(table.contains(&row), "{table}");
    }
}

/// No client sees an empty document without a trace of the defect.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "the server wrote invalid JSON")]
fn own_json_that_is_invalid_is_a_defect() {
    cbor(b"{");
}
