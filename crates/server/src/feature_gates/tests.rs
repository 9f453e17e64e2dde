use super::*;

const ALL: [Feature; 12] = [
    Feature::ApiResponseCompression,
    Feature::CborServingAndStorage,
    Feature::ComponentFlagz,
    Feature::ComponentStatusz,
    Feature::ConstrainedImpersonation,
    Feature::ResourceClaimGranularStatusAuthorization,
    Feature::UnsafeMalformedObjectDeletion,
    Feature::WatchList,
    Feature::Kinds(pintle_kinds::Feature::ClusterTrustBundle),
    Feature::Kinds(pintle_kinds::Feature::GenericWorkload),
    Feature::Kinds(pintle_kinds::Feature::PodCertificateRequest),
    Feature::Kinds(pintle_kinds::Feature::StorageVersionMigrator),
];

/// The names of the features that are on with a value of the flag.
fn features(flag: &str) -> Result<Vec<&'static str>, String> {
    let gates = FeatureGates::parse([flag]).map_err(|error| error.to_string())?;
    Ok(ALL.into_iter().filter(|feature| gates.has(*feature)).map(Feature::name).collect())
}

fn refused(flag: &str, why: &str) {
    assert_eq!(features(flag), Err(format!("--feature-gates: {why}")), "{flag}");
}

#[test]
fn feature_gates_are_parsed_or_refused() {
    const COMPRESSION: &str = "APIResponseCompression";
    const CBOR: &str = "CBORServingAndStorage";
    const FLAGZ: &str = "ComponentFlagz";
    const STATUSZ: &str = "ComponentStatusz";
    const IMPERSONATION: &str = "ConstrainedImpersonation";
    const CLAIMS: &str = "DRAResourceClaimGranularStatusAuthorization";
    const DELETION: &str = "AllowUnsafeMalformedObjectDeletion";
    const LIST: &str = "WatchList";
    const MIGRATOR: &str = "StorageVersionMigrator";
    let default = [COMPRESSION, FLAGZ, STATUSZ, IMPERSONATION, CLAIMS, LIST];
    let rows: &[(&str, &[&str])] = &[
        ("", &default),
        ("APIResponseCompression=false", &[FLAGZ, STATUSZ, IMPERSONATION, CLAIMS, LIST]), // CMP-02
        (" APIResponseCompression = true ,", &default),
        ("kube:WatchList=false", &[COMPRESSION, FLAGZ, STATUSZ, IMPERSONATION, CLAIMS]),
        ("AllBeta=false,WatchList=true", &[LIST]),
        ("WatchList=true,AllBeta=false", &[LIST]),
        (
            "AllAlpha=true",
            &[
                COMPRESSION,
                CBOR,
                FLAGZ,
                STATUSZ,
                IMPERSONATION,
                CLAIMS,
                DELETION,
                LIST,
                "GenericWorkload",
            ],
        ),
        (
            "StorageVersionMigrator=true",
            &[COMPRESSION, FLAGZ, STATUSZ, IMPERSONATION, CLAIMS, LIST, MIGRATOR],
        ),
        ("WatchList=false,WatchList=true", &default),
        (
            "ComponentFlagz=false,ComponentStatusz=false",
            &[COMPRESSION, IMPERSONATION, CLAIMS, LIST],
        ),
        ("ConstrainedImpersonation=false", &[COMPRESSION, FLAGZ, STATUSZ, CLAIMS, LIST]),
        // A gate without effect here accepts both values; a fixed one accepts the value that it
        // has.
        ("GangScheduling=false,KubeletCrashLoopBackOffMax=false", &default),
        ("EnvFiles=true,HPAScaleToZero=false", &default),
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
        "EnvFiles=false",
        "cannot set feature gate EnvFiles to false, this server always has the feature",
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
fn gates_are_sorted_and_dependencies_and_features_exist() {
    assert!(GATES.is_sorted_by(|a, b| a.name < b.name));
    for (name, needed) in DEPENDENCIES {
        assert!(known(name).is_some(), "{name}");
        assert!(needed.iter().all(|needed| known(needed).is_some()), "{name}");
    }
    let mut both: Vec<_> = GATES.iter().filter(|gate| gate.support == Support::Both).collect();
    both.retain(|gate| !ALL.iter().any(|feature| feature.name() == gate.name));
    assert!(both.is_empty(), "{both:?}");
    for feature in ALL {
        assert_eq!(
            known(feature.name()).map(|gate| gate.support),
            Some(Support::Both),
            "{feature:?}"
        );
    }
}

/// All rows but that of `EnvFiles` are from `kubernetes_feature_enabled` of a kube-apiserver
/// v1.36.3 with `--emulated-version`.
#[test]
fn gates_have_the_stage_and_default_of_the_emulated_release() {
    let of = |release: &str, flag: &str| {
        let version = EffectiveVersion::parse([release], []).unwrap();
        FeatureGates::parse_for(version, [flag]).map_err(|error| error.to_string())
    };
    let rows = [
        ("1.36", "ComponentFlagz", Some(("BETA", true))),
        ("1.35", "ComponentFlagz", Some(("ALPHA", false))),
        ("1.36", "AllAlpha", Some(("ALPHA", false))),
        ("1.36", "AtomicFIFO", Some(("BETA", true))),
        ("1.35", "AtomicFIFO", None),
        ("1.34", "StorageVersionMigrator", Some(("ALPHA", false))),
        ("1.35", "StorageVersionMigrator", Some(("BETA", false))),
        ("1.34", "DetectCacheInconsistency", Some(("BETA", true))),
        ("1.33", "DetectCacheInconsistency", None),
        ("1.33", "AnonymousAuthConfigurableEndpoints", Some(("BETA", true))),
        ("1.34", "AnonymousAuthConfigurableEndpoints", Some(("", true))),
        // This server always has the feature and reports it as on.
        ("1.34", "EnvFiles", Some(("ALPHA", true))),
        ("1.35", "ConstrainedImpersonation", Some(("ALPHA", false))),
        ("1.34", "ConstrainedImpersonation", None),
    ];
    for (release, name, expected) in rows {
        let gates = of(release, "").unwrap();
        let found =
            gates.all().into_iter().find(|gate| gate.0 == name).map(|(_, stage, on)| (stage, on));
        assert_eq!(found, expected, "{name} in {release}");
    }
    let all_alpha = of("1.35", "AllAlpha=true").unwrap();
    assert!(
        all_alpha.has(Feature::ComponentFlagz)
            && !of("1.36", "").unwrap().ahead().contains(&"EnvFiles")
    );
    assert!(of("1.34", "").unwrap().ahead().contains(&"EnvFiles"));
    let why = "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.34, min \
               compatibility version 1.33";
    assert_eq!(of("1.34", "AtomicFIFO=true").map(drop), Err(format!("--feature-gates: {why}")));
}

#[test]
fn rows_of_earlier_releases_are_sorted_and_name_gates() {
    assert!(EARLIER.is_sorted_by(|a, b| (a.name, a.until) < (b.name, b.until)));
    for row in EARLIER {
        assert!(known(row.name).is_some(), "{}", row.name);
        assert!((34..=36).contains(&row.until), "{}", row.name);
    }
}
