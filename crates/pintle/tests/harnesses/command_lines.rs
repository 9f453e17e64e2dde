//! The command lines of harnesses. `{…}` is filled in: `{etcd}`, `{peer}` and `{port}` are ports,
//! `{pki}` and `{data}` directories.

/// How a harness starts its two programs.
pub(crate) struct Harness {
    pub(crate) name: &'static str,
    pub(crate) etcd: &'static str,
    pub(crate) kube_apiserver: &'static str,
    /// The path that returns 200 when the server is ready.
    pub(crate) probe: &'static str,
    /// True if the certificates of the server and of the client are self-signed.
    pub(crate) self_signed: bool,
}

pub(crate) const HARNESSES: &[Harness] = &[
    Harness {
        name: "envtest",
        etcd: "--advertise-client-urls=http://127.0.0.1:{etcd} --data-dir={data} \
               --listen-client-urls=http://127.0.0.1:{etcd} \
               --listen-peer-urls=http://127.0.0.1:{peer} --unsafe-no-fsync=true",
        kube_apiserver: "--allow-privileged=true --authorization-mode=RBAC \
               --bind-address=127.0.0.1 --cert-dir={pki} --client-ca-file={pki}/ca.crt \
               --disable-admission-plugins=ServiceAccount \
               --etcd-servers=http://127.0.0.1:{etcd} --secure-port={port} \
               --service-account-issuer=https://127.0.0.1:{port}/ \
               --service-account-key-file={pki}/sa-signer.crt \
               --service-account-signing-key-file={pki}/sa-signer.key \
               --service-cluster-ip-range=10.0.0.0/24",
        probe: "/healthz",
        self_signed: false,
    },
    Harness {
        name: "kube-api-test",
        etcd: "-data-dir {data} -wal-dir {data}/wal --listen-client-urls http://0.0.0.0:{etcd} \
               --advertise-client-urls http://0.0.0.0:{etcd} \
               --initial-cluster default=http://localhost:{peer} \
               --initial-advertise-peer-urls http://localhost:{peer} \
               --listen-peer-urls http://localhost:{peer}",
        kube_apiserver: "--cert-dir {pki} --secure-port {port} \
               --etcd-servers http://0.0.0.0:{etcd} --authorization-mode RBAC \
               --service-account-issuer https://localhost \
               --service-account-signing-key-file {pki}/apiserver.key \
               --service-account-signing-key-file {pki}/apiserver.key \
               --service-account-key-file {pki}/apiserver.key \
               --service-account-issuer {pki}/apiserver.crt \
               --disable-admission-plugins ServiceAccount --client-ca-file {pki}/client.crt \
               --service-cluster-ip-range 10.0.0.0/24 --allow-privileged",
        probe: "/readyz",
        self_signed: true,
    },
    Harness {
        name: "kwokctl",
        etcd: "--name=node0 --initial-advertise-peer-urls=http://127.0.0.1:{peer} \
               --listen-peer-urls=http://127.0.0.1:{peer} \
               --advertise-client-urls=http://127.0.0.1:{etcd} \
               --listen-client-urls=http://127.0.0.1:{etcd} \
               --initial-cluster=node0=http://127.0.0.1:{peer} --auto-compaction-retention=1 \
               --quota-backend-bytes=8589934592 --data-dir={data}",
        kube_apiserver: "--etcd-prefix=/registry --allow-privileged=true --admission-control= \
               --runtime-config=api/legacy=false,api/alpha=false \
               --feature-gates=KubeletTracing=true,APIServerTracing=false \
               --max-requests-inflight=0 --max-mutating-requests-inflight=0 \
               --enable-priority-and-fairness=false \
               --etcd-servers=http://127.0.0.1:{etcd} --authorization-mode=Node,RBAC \
               --bind-address=127.0.0.1 --secure-port={port} --tls-cert-file={pki}/apiserver.crt \
               --tls-private-key-file={pki}/apiserver.key --client-ca-file={pki}/ca.crt \
               --service-account-key-file={pki}/apiserver.key \
               --service-account-signing-key-file={pki}/apiserver.key \
               --service-account-issuer=https://kubernetes.default.svc.cluster.local \
               --proxy-client-key-file={pki}/client.key --proxy-client-cert-file={pki}/client.crt \
               --endpoint-reconciler-type=none --tracing-config-file={pki}/tracing.yaml --v=4",
        probe: "/healthz",
        self_signed: false,
    },
];
