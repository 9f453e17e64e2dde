//! Destinations by names and pods, in tables.

use pintle_value::json;

use super::*;

#[test]
fn names_are_parsed_with_schemes_and_ports() {
    let rows = [
        ("a", Some(("", "a", ""))),
        ("a:80", Some(("", "a", "80"))),
        ("https:a:web", Some(("https", "a", "web"))),
        ("https:a:", Some(("https", "a", ""))),
        ("ftp:a:80", None),
        (":80", None),
        ("a:b:c:d", None),
    ];
    for (id, expected) in rows {
        assert_eq!(split(id), expected, "{id}");
    }
}

#[test]
fn a_container_is_named_or_the_only_one() {
    let one = r#"{"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c"}]}}"#;
    let two =
        r#"{"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c"},{"name":"d"}]}}"#;
    let rows = [
        (one, "", "c"),
        (one, "c", "c"),
        (one, "i", "i"),
        (one, "x", "container x is not valid for pod p"),
        (two, "d", "d"),
        (two, "", "a container name must be specified for pod p, choose one of: [i c d]"),
        ("{}", "", "a container name must be specified for pod p"),
    ];
    for (pod, container, expected) in rows {
        let pod = json::parse(pod.as_bytes()).unwrap();
        let chosen = choose_container(&pod, "p", container);
        let message = chosen.unwrap_or_else(|status| status.message);
        assert_eq!(message, expected, "{container}");
    }
}

#[test]
fn an_address_of_the_preferred_type_is_chosen() {
    let node = r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},
        {"type":"Hostname","address":"n"},{"type":"InternalIP","address":"fd00::1"}]}}"#;
    let rows: &[(&str, &[&str], &str)] = &[
        (node, &["Hostname", "InternalIP"], "n"),
        (node, &["InternalDNS", "InternalIP"], "10.0.0.1"),
        (
            node,
            &["ExternalIP"],
            "no preferred addresses found; known addresses: [{InternalIP 10.0.0.1} {Hostname n} \
             {InternalIP fd00::1}]",
        ),
        ("{}", &["Hostname"], "no preferred addresses found; known addresses: []"),
    ];
    for (node, types, expected) in rows {
        let node = json::parse(node.as_bytes()).unwrap();
        let types: Vec<String> = types.iter().map(|name| (*name).to_owned()).collect();
        let found = preferred_address(&node, &types).unwrap_or_else(|status| status.message);
        assert_eq!(found, *expected, "{types:?}");
    }
}
