//! Where a service is: at one of its endpoints, else at its cluster address.

use pintle_meta::GroupVersionResource;
use pintle_registry::Registry;
use pintle_value::Value;

/// `host:port` of a service's port.
pub(super) fn of(
    registry: &Registry,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<String, String> {
    let find = |resource| {
        let resource = registry.resource(&GroupVersionResource::new("", "v1", resource));
        let found = resource.and_then(|resource| registry.peek(&resource, namespace, name));
        found.map(|found| found.tree()).transpose().map_err(|why| why.to_string())
    };
    let service = find("services")?.ok_or_else(|| format!("service {name:?} not found"))?;
    let text = |path: &[&str]| service.str_at(path).unwrap_or_default().to_owned();
    if text(&["spec", "type"]) == "ExternalName" {
        return Ok(format!("{}:{port}", text(&["spec", "externalName"])));
    }
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let number = |value: &Value| value.get("port").and_then(Value::as_int);
    let Some(said) = ports.iter().find(|said| number(said) == Some(i64::from(port))) else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    if let Some(address) = find("endpoints")?.and_then(|endpoints| first_ready(&endpoints, said)) {
        return Ok(address);
    }
    match text(&["spec", "clusterIP"]).as_str() {
        "" | "None" => Err(format!("service {name:?} has no address")),
        address if address.contains(':') => Ok(format!("[{address}]:{port}")),
        address => Ok(format!("{address}:{port}")),
    }
}

/// The first ready address, with the port that goes by the same name.
fn first_ready(endpoints: &Value, port: &Value) -> Option<String> {
    let name = port.str_at(&["name"]).unwrap_or_default();
    let subsets = endpoints.get("subsets").and_then(Value::as_array)?;
    subsets.iter().find_map(|subset| {
        let address = subset.get("addresses")?.as_array()?.first()?.str_at(&["ip"])?;
        let ports = subset.get("ports")?.as_array()?;
        let named = |port: &&Value| port.str_at(&["name"]).unwrap_or_default() == name;
        let port = ports.iter().find(named)?.get("port")?.as_int()?;
        Some(if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        })
    })
}
