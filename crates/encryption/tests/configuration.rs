//! Invalid configurations and upstream's errors. upstream:
//! `apiserver/pkg/apis/apiserver/validation/validation_encryption_test.go` and the tests of
//! `apiserver/pkg/server/options/encryptionconfig`.

use pintle_encryption::{Configuration, Error, Kms, Providers};

const KEY: &str = "keys: [{name: k, secret: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=}]";

/// Invalid configurations, each with its error. `$K` is a valid key.
const REFUSED: &[(&str, &str)] = &[
    ("[]", "resources: Required value: at least one resources is required"),
    (
        "[{providers: [{identity: {}}]}]",
        "resources[0].resources: Required value: at least one resources[0].resources is required",
    ),
    (
        "[{resources: [secrets]}]",
        "resources[0].providers: Required value: at least one resources[0].providers is required",
    ),
    (
        "[{resources: [secrets], providers: [{}]}]",
        "resources[0].providers[0]: Invalid value: []: provider does not contain any of the expected \
         providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
    ),
    (
        "[{resources: [secrets], providers: [{identity: {}, aesgcm: {$K}}]}]",
        "more than one provider specified in a single element, should split into different list elements",
    ),
    (
        "[{resources: [secrets], providers: [{aesgcm: {keys: []}}]}]",
        "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required",
    ),
    (
        "[{resources: [secrets], providers: [{aescbc: {keys: [{secret: AA==}]}}]}]",
        "resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key",
    ),
    (
        "[{resources: [secrets], providers: [{aescbc: {keys: [{name: k}]}}]}]",
        "resources[0].providers[0].aescbc.keys[0].secret: Required value: secret is a mandatory field for a \
         key",
    ),
    (
        "[{resources: [secrets], providers: [{secretbox: {keys: [{name: k, secret: '-'}]}}]}]",
        "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secrets must be \
         base64 encoded",
    ),
    (
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: k, secret: AAAA}]}}]}]",
        "secret is not of the expected length, got 3, expected one of [16 24 32]",
    ),
    (
        "[{resources: [secrets], providers: [{secretbox: {keys: [{name: k, secret: AAAA}]}}]}]",
        "secret is not of the expected length, got 3, expected one of [32]",
    ),
    (
        "[{resources: [secrets, secrets], providers: [{identity: {}}]}]",
        "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be \
         specified multiple times",
    ),
    (
        "[{resources: [secrets, '*.'], providers: [{identity: {}}]}]",
        "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
         they will be masked",
    ),
    ("[{resources: ['*.apps', '*.*'], providers: [{identity: {}}]}]", "they will be masked"),
    ("[{resources: ['*.apps', '*.apps'], providers: [{identity: {}}]}]", "they will be masked"),
    (
        "[{resources: [Secrets], providers: [{identity: {}}]}]",
        "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital \
         letters",
    ),
    ("[{resources: ['*'], providers: [{identity: {}}]}]", "use '*.' to encrypt all the resources"),
    (
        "[{resources: [serviceipallocations], providers: [{identity: {}}]}]",
        "resources which do not have REST API/s cannot be encrypted",
    ),
    (
        "[{resources: ['*.events.k8s.io'], providers: [{identity: {}}]}]",
        "objects are stored using the 'events' API group in etcd",
    ),
    (
        "[{resources: [ingresses.extensions], providers: [{identity: {}}]}]",
        "'extensions' group has been removed and cannot be used for encryption",
    ),
    (
        "[{resources: ['deployments.*'], providers: [{identity: {}}]}]",
        "encrypting the same resource across groups is not supported",
    ),
    (
        "[{resources: ['*.*'], providers: [{identity: {}}]}, {resources: [secrets], providers: [{identity: \
         {}}]}]",
        "resource \"secrets\" is masked by earlier rule \"*.*\"",
    ),
    (
        "[{resources: ['*.'], providers: [{identity: {}}]}, {resources: [secrets], providers: [{identity: \
         {}}]}]",
        "resource \"secrets\" is masked by earlier rule \"*.\"",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, endpoint: 'unix:///a'}}]}]",
        "resources[0].providers[0].kms.name: Required value: name is a mandatory field for a provider",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: 'a:b', endpoint: 'unix:///a'}}]}]",
        "invalid KMS provider name a:b, must not contain ':'",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a'}}, {kms: \
         {apiVersion: v2, name: a, endpoint: 'unix:///b'}}]}]",
        "duplicate KMS provider name a, names must be unique",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a}}]}]",
        "resources[0].providers[0].kms.endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'tcp://a'}}]}]",
        "unsupported scheme \"tcp\" for KMS provider, only unix is supported",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: \
         0s}}]}]",
        "timeout should be a positive value",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', \
         cachesize: 3}}]}]",
        "cachesize is not supported in v2",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {apiVersion: v3, name: a, endpoint: 'unix:///a'}}]}]",
        "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported",
    ),
    (
        "[{resources: [secrets], providers: [{kms: {name: a, endpoint: 'unix:///a'}}]}]",
        "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set \
         --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.",
    ),
    (
        "[{resources: [secrets], providers: [{identity: {}}], sauce: 1}]",
        "strict decoding error: unknown field \"resources[0].sauce\"",
    ),
    (
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: k, secret: 5}]}}]}]",
        "\"resources[0].providers[0].aesgcm.keys[0].secret\" must be a string",
    ),
];

fn read(resources: &str) -> Result<Providers, Error> {
    let resources = resources.replace("$K", KEY);
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources: {resources}\n"
    );
    let no_plugins = |_: &Kms| Err(Error::KeyService("there are no plugins here".to_owned()));
    Providers::new(&Configuration::read(text.as_bytes(), false)?, &no_plugins)
}

#[test]
fn invalid_configurations_are_refused() {
    for (resources, why) in REFUSED {
        match read(resources) {
            Err(Error::Configuration(message)) => {
                assert!(message.contains(why), "{resources}: {message}")
            }
            other => panic!("{resources}: {other:?}"),
        }
    }
}

/// No error shows a key or a part of one.
#[test]
fn no_error_shows_a_secret() {
    const SECRET: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQ";
    for resources in [
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: k, secret: $S}]}}]}]",
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: k, secret: [$S]}]}}]}]",
        "[{resources: [secrets], providers: [{aesgcm: {keys: {name: k, secret: $S}}}]}]",
        "[{resources: [secrets], providers: [{identity: {}, aesgcm: {keys: [{secret: $S}]}}]}]",
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: k, secret: $S}]}, x: 1}]}]",
    ] {
        let why = read(&resources.replace("$S", SECRET)).unwrap_err().to_string();
        assert!(!why.contains("c2Vjcm"), "{why}");
    }
}

#[test]
fn files_without_a_configuration_are_refused() {
    for (text, why) in [
        ("", "no kind \"\" is registered for version \"\""),
        ("kind: Config\napiVersion: v1", "no kind \"Config\" is registered for version \"v1\""),
        ("- a", "no kind \"\" is registered"),
        ("{", ""),
        ("\u{0}", ""),
    ] {
        let Err(Error::Configuration(message)) = Configuration::read(text.as_bytes(), false) else {
            panic!("{text:?}");
        };
        assert!(message.contains(why), "{text:?}: {message}");
    }
    let long = vec![b' '; 5 << 20];
    assert!(Configuration::read(&long, false).is_err());
}

/// A file of megabytes takes time and memory in proportion to its length, because rules share their
/// providers.
#[test]
fn a_huge_configuration_takes_linear_time_and_memory() {
    let resources: Vec<String> = (0..30_000).map(|n| format!("'*.group{n}.example'")).collect();
    let providers = vec!["{identity: {}}"; 30_000].join(", ");
    let resources =
        format!("[{{resources: [{}], providers: [{providers}]}}]", resources.join(", "));
    read(&resources).unwrap();
    let kms: Vec<String> = (0..20_000)
        .map(|n| format!("{{kms: {{apiVersion: v2, name: n{n}, endpoint: 'tcp://a'}}}}"))
        .collect();
    let kms = format!("[{{resources: [secrets], providers: [{}]}}]", kms.join(", "));
    assert!(read(&kms).unwrap_err().to_string().contains("unsupported scheme"));
}
