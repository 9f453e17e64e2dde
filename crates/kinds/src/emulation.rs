//! Resources that are newer than the emulated release (`--emulated-version`).

/// The minor release of Kubernetes 1 that this program implements.
pub const NEWEST_MINOR: u32 = 36;

/// The release that a server emulates, and which newer resources it serves nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// A minor release of Kubernetes 1.
    pub minor: u32,
    /// True to serve newer versions of resources of which an older version is served
    /// (`--emulation-forward-compatible`). Older alpha versions do not count.
    pub forward_compatible: bool,
    /// True to serve newer versions that `--runtime-config` names
    /// (`--runtime-config-emulation-forward-compatible`).
    pub runtime_config_forward_compatible: bool,
}

impl Default for Emulation {
    fn default() -> Self {
        Self {
            minor: NEWEST_MINOR,
            forward_compatible: false,
            runtime_config_forward_compatible: false,
        }
    }
}

/// The resources that are newer than the oldest release that can be emulated: the group, the
/// version, the resource, and the minor release of Kubernetes 1 that introduced it.
const INTRODUCED: &[(&str, &str, &str, u32)] = &[
    ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", 36),
    ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", 36),
    ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicies", 34),
    ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicybindings", 34),
    ("certificates.k8s.io", "v1beta1", "podcertificaterequests", 35),
    ("resource.k8s.io", "v1", "deviceclasses", 34),
    ("resource.k8s.io", "v1", "resourceclaims", 34),
    ("resource.k8s.io", "v1", "resourceclaimtemplates", 34),
    ("resource.k8s.io", "v1", "resourceslices", 34),
    ("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", 36),
    ("resource.k8s.io", "v1beta2", "devicetaintrules", 36),
    ("storage.k8s.io", "v1", "volumeattributesclasses", 34),
    ("storagemigration.k8s.io", "v1beta1", "storageversionmigrations", 35),
];

/// The release that introduced a resource, if it is newer than the emulated one.
pub(crate) fn introduced_later(
    emulation: Emulation,
    group: &str,
    version: &str,
    resource: &str,
) -> Option<u32> {
    let mut rows = INTRODUCED.iter();
    let row = rows.find(|row| (row.0, row.1, row.2) == (group, version, resource))?;
    Some(row.3).filter(|introduced| *introduced > emulation.minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RuntimeConfig, generated};

    /// Returns the served resources of `INTRODUCED`, or the error about the flags.
    fn served_new_resources(
        runtime_config: &str,
        emulation: Emulation,
    ) -> Result<Vec<String>, String> {
        let config = RuntimeConfig::parse([runtime_config]).unwrap();
        let config = config.with(crate::Feature::ALL.into_iter().collect()).emulating(emulation);
        config.check().map_err(|error| error.to_string())?;
        let is_new = |row: &&generated::Resource| {
            let mut rows = INTRODUCED.iter();
            rows.any(|served_new_resources| {
                (served_new_resources.0, served_new_resources.1, served_new_resources.2)
                    == (row.group, row.version, row.plural)
            })
        };
        let rows = generated::resources().iter().filter(is_new);
        let on = rows.filter(|row| config.serves(row.group, row.version, row.plural, row.on));
        Ok(on.map(|row| format!("{}/{}/{}", row.group, row.version, row.plural)).collect())
    }

    #[test]
    fn rows_name_resources() {
        for (group, version, resource, _) in INTRODUCED {
            let mut rows = generated::resources().iter();
            let found =
                rows.any(|r| (r.group, r.version, r.plural) == (*group, *version, *resource));
            assert!(found, "{group}/{version}/{resource}");
        }
    }

    /// The counts are those of a kube-apiserver v1.36.3 with these flags.
    #[test]
    fn an_emulated_release_serves_no_newer_resources() {
        let at = |minor| Emulation { minor, ..Emulation::default() };
        let count =
            |flag, emulation| served_new_resources(flag, emulation).map(|served| served.len());
        assert_eq!(count("", at(36)), Ok(7));
        assert_eq!(count("", at(35)), Ok(5));
        assert_eq!(count("", at(34)), Ok(5));
        assert_eq!(count("", at(33)), Ok(0));
        assert_eq!(count("api/all=true", at(36)), Ok(13));
        assert_eq!(count("api/all=true", at(35)), Ok(9));
        let policies = "admissionregistration.k8s.io/v1beta1=true";
        let forward = Emulation { forward_compatible: true, ..at(34) };
        assert_eq!(count(policies, at(34)), Ok(7));
        assert_eq!(count(policies, forward), Ok(9));
        // Resources that only had alpha versions are not served in newer ones.
        assert_eq!(count("resource.k8s.io/v1alpha3=true", forward), Ok(5));
    }

    #[test]
    fn runtime_config_can_name_newer_resources_if_forward_compatible() {
        let at = Emulation { minor: 34, ..Emulation::default() };
        let allowed = Emulation { runtime_config_forward_compatible: true, ..at };
        let rule = "resource.k8s.io/v1beta2/devicetaintrules";
        let added =
            |flag| served_new_resources(flag, allowed).map(|on| on.contains(&rule.to_owned()));
        assert_eq!(added("resource.k8s.io/v1beta2/devicetaintrules=true"), Ok(true));
        assert_eq!(added("resource.k8s.io/v1beta2=true"), Ok(true));
        assert_eq!(added("api/beta=true"), Ok(false));
        assert_eq!(
            served_new_resources("resource.k8s.io/v1beta2/devicetaintrules=true", at),
            Err("cannot enable resource resource.k8s.io/v1beta2, Resource=devicetaintrules in \
                 runtime-config because it is introduced at 1.36 after the current version 1.34. \
                 Consider setting --runtime-config-emulation-forward-compatible=true"
                .to_owned())
        );
        assert_eq!(
            served_new_resources("storagemigration.k8s.io/v1beta1=true", at),
            Err("cannot enable version storagemigration.k8s.io/v1beta1 in runtime-config because \
                 all the resources have been introduced after the current version 1.34. Consider \
                 setting --runtime-config-emulation-forward-compatible=true"
                .to_owned())
        );
        // Some resources of this version are older.
        assert!(served_new_resources("admissionregistration.k8s.io/v1=true", at).is_ok());
        assert!(served_new_resources("storagemigration.k8s.io/v1beta1=false", at).is_ok());
    }
}
