//! The files that flags name, and errors in each.

/// The secret in the files, which no error may show.
pub(crate) const SECRET: &str = "s3cr3t";

/// The content of a file. In texts, `{pki}` is the directory of [`super::files::write_pki`].
#[derive(Debug)]
pub(crate) enum Content {
    Text(&'static str),
    /// The content of this file in `{pki}`.
    Copy(&'static str),
}

/// A file that a flag names.
pub(crate) struct Row {
    /// The flag that an error names, and the flags that it needs. `{file}` is the file, `{outer}`
    /// another one, which in most rows names `{file}`.
    pub(crate) flags: &'static str,
    /// The content of `{outer}`.
    pub(crate) outer: Option<&'static str>,
    /// A content with which the server starts; `None` if a start needs more than files.
    pub(crate) good: Option<Content>,
    /// A text of the error about an empty file; `None` if the server starts with an empty file.
    pub(crate) empty: Option<&'static str>,
    /// True if the path may be a directory, whose files are then read.
    pub(crate) directory_is_read: bool,
    /// Wrong contents, each with texts of its error.
    pub(crate) wrong: &'static [(Content, &'static [&'static str])],
}

use Content::{Copy, Text};

pub(crate) const ROW: Row =
    Row { flags: "", outer: None, good: None, empty: None, directory_is_read: false, wrong: &[] };

const NO_CERTIFICATE: &str = "there is no certificate in this file";
const NO_KEY: &str = "this is not a private key in PEM";
const MISMATCH: &str = "this key is not that of the certificate in";
const UNREADABLE_CERTIFICATE: &str = "of this file cannot be read";

const WRONG_CERTIFICATES: &[(Content, &[&str])] = &[
    (Text("s3cr3t"), &[NO_CERTIFICATE]),
    (Copy("server.key"), &[NO_CERTIFICATE]),
    (Copy("half.crt"), &["this is not a certificate in PEM"]),
    (Copy("damaged.crt"), &[UNREADABLE_CERTIFICATE]),
    (Copy("mixed.crt"), &[UNREADABLE_CERTIFICATE]),
];

const WRONG_PAIR_CERTIFICATES: &[(Content, &[&str])] = &[
    (Text("s3cr3t"), &[NO_CERTIFICATE]),
    (Copy("server.key"), &[NO_CERTIFICATE]),
    (Copy("half.crt"), &["this is not a certificate in PEM"]),
    (Copy("damaged.crt"), &[UNREADABLE_CERTIFICATE]),
];

const WRONG_KEYS: &[(Content, &[&str])] = &[
    (Text("s3cr3t"), &[NO_KEY]),
    (Copy("server.crt"), &[NO_KEY]),
    (Text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), &["this key"]),
    (Copy("other.key"), &["server.crt", MISMATCH]),
];

const NOT_YAML: (Content, &[&str]) = (Text("kind: A\nb: [\n"), &["line 2"]);
const TWICE: (Content, &[&str]) =
    (Text("kind: A\nkind: B\n"), &["line 2: key \"kind\" already set in map"]);
const NO_KIND: &str = "no kind \"\" is registered for version \"\"";
const OTHER_KIND: (Content, &[&str]) = (
    Text("apiVersion: apiserver.config.k8s.io/v1\nkind: Other\n"),
    &["no kind \"Other\" is registered for version \"apiserver.config.k8s.io/v1\""],
);
const LIST: (Content, &[&str]) = (Text("- a\n- b\n"), &["no kind"]);

const NO_CONTEXT: &str = "there is no context \"\"";

const WRONG_KUBECONFIGS: &[(Content, &[&str])] = &[
    NOT_YAML,
    (Text("- s3cr3t\n"), &[NO_CONTEXT]),
    (Text("kind: Pod\napiVersion: v1\n"), &["no kind \"Pod\""]),
    (Text("apiVersion: v1\nkind: Config\ncurrent-context: a\n"), &["there is no context \"a\""]),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b}}]\n",
        ),
        &["there is no cluster \"b\""],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b}}]\n\
             clusters: [{name: b, cluster: {server: 'http://s'}}]\n",
        ),
        &["server", "must begin with https://"],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b, user: c}}]\n\
             clusters: [{name: b, cluster: {server: 'https://s'}}]\n\
             users: [{name: c, user: {token: s3cr3t, exec: {command: s3cr3t}}}]\n",
        ),
        &["exec is not supported"],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b}}]\n\
             clusters: [{name: b, cluster: {server: 'https://s', certificate-authority: /none/ca}}]\n",
        ),
        &["certificate-authority", "/none/ca", "No such file or directory"],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b}}]\n\
             clusters: [{name: b, cluster: {server: 'https://s', certificate-authority: /dev/null}}]\n",
        ),
        &["certificate-authority", "there is no certificate in it"],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b, user: c}}]\n\
             clusters: [{name: b, cluster: {server: 'https://s'}}]\n\
             users: [{name: c, user: {client-certificate: '{pki}/server.crt'}}]\n",
        ),
        &["client-certificate and client-key belong together"],
    ),
    (
        Text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{name: a, context: {cluster: b, user: c}}]\n\
             clusters: [{name: b, cluster: {server: 'https://s'}}]\n\
             users: [{name: c, user: {client-certificate: '{pki}/server.crt', \
             client-key: '{pki}/other.key'}}]\n",
        ),
        &["client-certificate and client-key: the key is not that of the certificate"],
    ),
];

const KUBECONFIG: Content = Text(
    "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
     contexts: [{name: a, context: {cluster: b, user: c}}]\n\
     clusters: [{name: b, cluster: {server: 'https://127.0.0.1:9', certificate-authority: '{pki}/ca.crt'}}]\n\
     users: [{name: c, user: {client-certificate: '{pki}/server.crt', client-key: '{pki}/server.key'}}]\n",
);

pub(crate) const ROWS: &[Row] = &[
    Row {
        flags: "--client-ca-file={file}",
        good: Some(Copy("ca.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--requestheader-client-ca-file={file}",
        good: Some(Copy("ca.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--tls-cert-file={file} --tls-private-key-file={pki}/server.key",
        good: Some(Copy("server.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_PAIR_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--tls-private-key-file={file} --tls-cert-file={pki}/server.crt",
        good: Some(Copy("server.key")),
        empty: Some(NO_KEY),
        wrong: WRONG_KEYS,
        ..ROW
    },
    Row {
        flags: "--tls-sni-cert-key={file},{pki}/server.key",
        good: Some(Copy("server.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_PAIR_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--tls-sni-cert-key={pki}/server.crt,{file}",
        good: Some(Copy("server.key")),
        empty: Some(NO_KEY),
        wrong: WRONG_KEYS,
        ..ROW
    },
    Row {
        flags: "--kubelet-certificate-authority={file}",
        good: Some(Copy("ca.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--kubelet-client-certificate={file} --kubelet-client-key={pki}/server.key",
        good: Some(Copy("server.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_PAIR_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--kubelet-client-key={file} --kubelet-client-certificate={pki}/server.crt",
        good: Some(Copy("server.key")),
        empty: Some(NO_KEY),
        wrong: WRONG_KEYS,
        ..ROW
    },
    Row {
        flags: "--proxy-client-cert-file={file} --proxy-client-key-file={pki}/server.key",
        good: Some(Copy("server.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_PAIR_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--proxy-client-key-file={file} --proxy-client-cert-file={pki}/server.crt",
        good: Some(Copy("server.key")),
        empty: Some(NO_KEY),
        wrong: WRONG_KEYS,
        ..ROW
    },
    Row {
        flags: "--token-auth-file={file}",
        good: Some(Text("s3cr3t,jane,7,\"a,b\"\n")),
        wrong: &[
            (Text("s3cr3t,jane,7\ns3cr3t,jane\n"), &["line 2"]),
            (Text("s3cr3t,jane,7\n\n,jane,7\ns3cr3t,\"jane,7\n"), &["line 4"]),
        ],
        ..ROW
    },
    Row {
        flags: "--service-account-key-file={file}",
        good: Some(Copy("server.key")),
        empty: Some("key"),
        wrong: &[
            (Text("s3cr3t"), &["key"]),
            (Copy("half.crt"), &["key"]),
            (Copy("damaged.crt"), &["key"]),
        ],
        ..ROW
    },
    Row {
        flags: "--service-account-signing-key-file={file}",
        good: Some(Copy("server.key")),
        empty: Some("key"),
        wrong: &[(Text("s3cr3t"), &["key"]), (Copy("server.crt"), &["key"])],
        ..ROW
    },
    Row {
        flags: "--authentication-config={file}",
        good: Some(Text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            TWICE,
            OTHER_KIND,
            LIST,
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwks: []\n",
                ),
                &["unknown field \"jwks\""],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
                     jwt: [{issuer: {url: 'http://s', audiences: [a]}}]\n",
                ),
                &["jwt[0].issuer.url"],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--oidc-ca-file={file} --oidc-issuer-url=https://127.0.0.1:9 --oidc-client-id=a",
        good: Some(Copy("ca.crt")),
        // With an empty file, the system's authorities are trusted, as upstream.
        empty: None,
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--authentication-token-webhook-config-file={file}",
        good: Some(KUBECONFIG),
        empty: Some(NO_CONTEXT),
        wrong: WRONG_KUBECONFIGS,
        ..ROW
    },
    Row {
        flags: "--authorization-config={file}",
        good: Some(Text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
             authorizers: [{type: RBAC, name: rbac}]\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            TWICE,
            OTHER_KIND,
            LIST,
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                     authorizers: [{type: RBAC, name: rbac, mode: a}]\n",
                ),
                &["unknown field \"authorizers[0].mode\""],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                     authorizers: [{type: Other, name: rbac}]\n",
                ),
                &["authorizers[0].type: Unsupported value: \"Other\""],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--authorization-config={outer}",
        outer: Some(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
             authorizers: [{type: Webhook, name: w, webhook: {timeout: 1s, failurePolicy: Deny, \
             subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, \
             connectionInfo: {type: KubeConfigFile, kubeConfigFile: '{file}'}}}]\n",
        ),
        good: Some(KUBECONFIG),
        empty: Some(NO_CONTEXT),
        wrong: WRONG_KUBECONFIGS,
        ..ROW
    },
    Row {
        flags: "--authorization-webhook-config-file={file} --authorization-mode=Webhook",
        good: Some(KUBECONFIG),
        empty: Some(NO_CONTEXT),
        wrong: WRONG_KUBECONFIGS,
        ..ROW
    },
    Row {
        flags: "--authorization-policy-file={file} --authorization-mode=ABAC",
        good: Some(Text(
            "{\"apiVersion\": \"abac.authorization.kubernetes.io/v1beta1\", \"kind\": \"Policy\", \
             \"spec\": {\"user\": \"jane\"}}\n",
        )),
        wrong: &[
            (Text("# a comment\n\n{\n"), &["line 3"]),
            (Text("{\"kind\": \"Other\"}\n"), &["line 1"]),
        ],
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={file}",
        good: Some(Text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: []\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[NOT_YAML, TWICE, OTHER_KIND, LIST],
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={outer}",
        outer: Some(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n\
             plugins: [{name: PodSecurity, path: file}]\n",
        ),
        good: Some(Text(
            "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            LIST,
            (
                Text(
                    "apiVersion: pod-security.admission.config.k8s.io/v1\n\
                     kind: PodSecurityConfiguration\ndefaults: {enforce: other}\n",
                ),
                &["PodSecurity", "defaults.enforce: Invalid value: \"other\""],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={outer} --enable-admission-plugins=EventRateLimit",
        outer: Some(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n\
             plugins: [{name: EventRateLimit, path: file}]\n",
        ),
        good: Some(Text(
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n\
             limits: [{type: Server, qps: 1, burst: 1}]\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            TWICE,
            LIST,
            (
                Text(
                    "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n\
                     limits: [{type: Other, qps: 1, burst: 1}]\n",
                ),
                &["EventRateLimit", "limits[0].type"],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={outer} --enable-admission-plugins=ImagePolicyWebhook",
        outer: Some(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n\
             plugins: [{name: ImagePolicyWebhook, \
             configuration: {imagePolicy: {kubeConfigFile: '{file}'}}}]\n",
        ),
        good: Some(KUBECONFIG),
        empty: Some(NO_CONTEXT),
        wrong: WRONG_KUBECONFIGS,
        ..ROW
    },
    Row {
        flags: "--encryption-provider-config={file}",
        good: Some(Text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n\
             resources: [{resources: [secrets], providers: [{identity: {}}]}]\n",
        )),
        empty: Some("is empty"),
        wrong: &[
            NOT_YAML,
            TWICE,
            OTHER_KIND,
            LIST,
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n\
                     resources: [{resources: [secrets], providers: [{identities: {}}]}]\n",
                ),
                &["resources[0].providers[0]", "identities"],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n\
                     resources: [{resources: [secrets], providers: [{aesgcm: \
                     {keys: [{name: a, secret: s3cr3t}]}}]}]\n",
                ),
                &["resources[0].providers[0].aesgcm.keys[0].secret"],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--audit-policy-file={file} --audit-log-path=audit.log",
        good: Some(Text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n")),
        empty: Some("loading audit policy file"),
        wrong: &[
            NOT_YAML,
            (Text("apiVersion: audit.k8s.io/v1\nkind: Other\n"), &["Other"]),
            (
                Text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Other}]\n"),
                &["rules[0].level"],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--audit-webhook-config-file={file} --audit-policy-file={outer}",
        outer: Some("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"),
        good: Some(KUBECONFIG),
        empty: Some(NO_CONTEXT),
        wrong: WRONG_KUBECONFIGS,
        ..ROW
    },
    Row {
        flags: "--tracing-config-file={file}",
        good: Some(Text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n\
             endpoint: 127.0.0.1:9\nsamplingRatePerMillion: 1000000\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            TWICE,
            OTHER_KIND,
            LIST,
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRate: 1\n",
                ),
                &["unknown field \"samplingRate\""],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: -1\n",
                ),
                &["samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: 1000001\n",
                ),
                &[
                    "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be",
                ],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: often\n",
                ),
                &["samplingRatePerMillion: must be an integer"],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 'http://localhost:4317'\n",
                ),
                &["endpoint: Invalid value: \"http://localhost:4317\": unsupported scheme: http"],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 'localhost:port'\n",
                ),
                &["endpoint: Invalid value: \"localhost:port\""],
            ),
            (
                Text(
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 4317\n",
                ),
                &["endpoint: must be a string"],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--egress-selector-config-file={file}",
        good: Some(Text(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: []\n",
        )),
        empty: Some(NO_KIND),
        wrong: &[
            NOT_YAML,
            TWICE,
            OTHER_KIND,
            LIST,
            (
                Text(
                    "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\nways: []\n",
                ),
                &["unknown field \"ways\""],
            ),
        ],
        ..ROW
    },
    Row {
        flags: "--egress-selector-config-file={outer}",
        outer: Some(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n\
             egressSelections: [{name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: \
             {url: 'https://127.0.0.1:9', tlsConfig: {caBundle: '{file}', \
             clientCert: '{pki}/server.crt', clientKey: '{pki}/server.key'}}}}}]\n",
        ),
        good: Some(Copy("ca.crt")),
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--etcd-cafile={file} --etcd-servers=https://127.0.0.1:9",
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--etcd-certfile={file} --etcd-keyfile={pki}/server.key --etcd-servers=https://127.0.0.1:9",
        empty: Some(NO_CERTIFICATE),
        wrong: WRONG_PAIR_CERTIFICATES,
        ..ROW
    },
    Row {
        flags: "--etcd-keyfile={file} --etcd-certfile={pki}/server.crt --etcd-servers=https://127.0.0.1:9",
        empty: Some(NO_KEY),
        wrong: WRONG_KEYS,
        ..ROW
    },
    Row {
        flags: "--manifests={file}",
        good: Some(Text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")),
        directory_is_read: true,
        wrong: &[
            NOT_YAML,
            (Text("name: a\n"), &["a document has no `kind`"]),
            (Text("kind: ConfigMap\napiVersion: v1\n"), &["ConfigMap"]),
        ],
        ..ROW
    },
];
