//! The declarations of `request` and `namespaceObject`.

use pintle_cel::{Declaration, Merge, Object, SIZE_MAX};

fn text() -> Declaration {
    Declaration::String { size_max: SIZE_MAX }
}

fn texts() -> Declaration {
    Declaration::list(text(), Merge::Atomic, SIZE_MAX)
}

fn object<const N: usize>(name: &str, fields: [(&str, Declaration); N]) -> Declaration {
    let fields = fields.into_iter().map(|(name, declaration)| (name.into(), declaration));
    Declaration::Object(Object::new(name, fields))
}

/// Declares `request`: an `AdmissionRequest` without its uid and its objects.
pub(super) fn request() -> Declaration {
    let kind =
        object("kubernetes.GroupVersionKind", ["group", "version", "kind"].map(|f| (f, text())));
    let resource = object(
        "kubernetes.GroupVersionResource",
        ["group", "version", "resource"].map(|field| (field, text())),
    );
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Declaration::map(texts(), SIZE_MAX)),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Declaration::Bool),
            ("options", Declaration::Dyn { size_max: SIZE_MAX }),
        ],
    )
}

/// Declares `namespaceObject`, the namespace of the request.
pub(super) fn namespace() -> Declaration {
    let labels = || Declaration::map(text(), SIZE_MAX);
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", Declaration::DateTime),
            ("deletionGracePeriodSeconds", Declaration::Int),
            ("deletionTimestamp", Declaration::DateTime),
            ("generation", Declaration::Int),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Declaration::DateTime),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let conditions = Declaration::list(condition, Merge::Atomic, SIZE_MAX);
    object(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", object("kubernetes.NamespaceSpec", [("finalizers", texts())])),
            (
                "status",
                object(
                    "kubernetes.NamespaceStatus",
                    [("conditions", conditions), ("phase", text())],
                ),
            ),
        ],
    )
}
