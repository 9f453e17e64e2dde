use super::*;

const ALL: [Feature; 10] = [
    Feature::ApiResponseCompression,
    Feature::CborServingAndStorage,
    Feature::ComponentFlagz,
    Feature::ComponentStatusz,
    Feature::UnsafeMalformedObjectDeletion,
    Feature::WatchList,
    Feature::Kinds(pintle_kinds::Feature::ClusterTrustBundle),
    Feature::Kinds(pintle_kinds::Feature::GenericWorkload),
    Feature::Kinds(pintle_kinds::Feature::PodCertificateRequest),
    Feature::Kinds(pintle_kinds::Feature::StorageVersionMigrator),
];

/// What a flag comes to: the names of the features that are on.
fn features(flag: &str) -> Result<Vec<&'static str>, String> {
    let gates = FeatureGates::parse([flag]).map_err(|error| error.to_string())?;
    Ok(ALL.into_iter().filter(|feature| gates.has(*feature)).map(Feature::name).collect())
}

fn refused(flag: &str, why: &str) {
    assert_eq!(features(flag), Err(format!("--feature-gates: {why}")), "{flag}");
}

#[test]
fn gates_are_known_or_refused() {
    const COMPRESSION: &str = "APIResponseCompression";
    const CBOR: &str = "CBORServingAndStorage";
    const FLAGZ: &str = "ComponentFlagz";
    const STATUSZ: &str = "ComponentStatusz";
    const DELETION: &str = "AllowUnsafeMalformedObjectDeletion";
    const LIST: &str = "WatchList";
    const MIGRATOR: &str = "StorageVersionMigrator";
    let default = [COMPRESSION, FLAGZ, STATUSZ, LIST];
    let rows: &[(&str, &[&str])] = &[
        ("", &default),
        ("APIResponseCompression=false", &[FLAGZ, STATUSZ, LIST]), // CMP-02
        (" APIResponseCompression = true ,", &default),
        ("kube:WatchList=false", &[COMPRESSION, FLAGZ, STATUSZ]),
        ("AllBeta=false,WatchList=true", &[LIST]),
        ("WatchList=true,AllBeta=false", &[LIST]),
        ("AllAlpha=true", &[COMPRESSION, CBOR, FLAGZ, STATUSZ, DELETION, LIST, "GenericWorkload"]),
        ("StorageVersionMigrator=true", &[COMPRESSION, FLAGZ, STATUSZ, LIST, MIGRATOR]),
        ("WatchList=false,WatchList=true", &default),
        ("ComponentFlagz=false,ComponentStatusz=false", &[COMPRESSION, LIST]),
        // What has no bearing here is taken both ways, and what is here one way is taken so.
        ("GangScheduling=false,KubeletCrashLoopBackOffMax=false", &default),
        ("ConstrainedImpersonation=true,HPAScaleToZero=false", &default),
        ("RetryGenerateName=true", &default), // DEP-25
    ];
    for (flag, on) in rows {
        assert_eq!(features(flag), Ok(on.to_vec()), "{flag}");
    }
    refused("Nonsense=true", "unrecognized feature gate: Nonsense");
    refused(
        "RetryGenerateName=false", // DEP-23
        "cannot set feature gate RetryGenerateName to false, feature is locked to true",
    );
    refused(
        "ConstrainedImpersonation=false",
        "cannot set feature gate ConstrainedImpersonation to false, this server always has the feature",
    );
    refused(
        "HPAScaleToZero=true",
        "cannot set feature gate HPAScaleToZero to true, this server does not have the feature",
    );
    refused("WatchList", "missing bool value for WatchList");
    refused(
        "WatchList=x",
        "invalid value of WatchList=x, err: strconv.ParseBool: parsing \"x\": invalid syntax",
    );
    refused(
        "AtomicFIFO=false,StaleControllerConsistencyJob=true",
        "StaleControllerConsistencyDaemonSet is enabled, but depends on features that are disabled: \
         [AtomicFIFO]",
    );
}

#[test]
fn rows_are_in_order_and_name_each_other() {
    assert!(GATES.is_sorted_by(|a, b| a.name < b.name));
    for (name, needed) in DEPENDENCIES {
        assert!(known(name).is_some(), "{name}");
        assert!(needed.iter().all(|needed| known(needed).is_some()), "{name}");
    }
    let mut both: Vec<_> = GATES.iter().filter(|gate| gate.here == Here::Both).collect();
    both.retain(|gate| !ALL.iter().any(|feature| feature.name() == gate.name));
    assert!(both.is_empty(), "{both:?}");
    for feature in ALL {
        assert_eq!(known(feature.name()).map(|gate| gate.here), Some(Here::Both), "{feature:?}");
    }
}
