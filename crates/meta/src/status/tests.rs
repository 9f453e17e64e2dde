use pintle_value::{Path, json};

use super::*;

/// Checks the JSON of a status. Members are sorted here; on the wire they are in upstream's order.
fn check(status: &Status, expected: &str) {
    let expected = json::parse(expected.as_bytes()).expect("rows are JSON");
    let mut found = status.to_value();
    let members = found.make_object();
    assert_eq!(members.remove("kind"), Some("Status".into()));
    assert_eq!(members.remove("apiVersion"), Some("v1".into()));
    assert_eq!(json::to_string(&found), json::to_string(&expected));
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

#[test]
fn failures_about_an_object_match_upstream() {
    check(
        &Status::not_found(&pods(), "x"),
        r#"{"metadata":{},"status":"Failure","message":"pods \"x\" not found","reason":"NotFound",
            "details":{"name":"x","kind":"pods"},"code":404}"#,
    );
    check(
        &Status::already_exists(&deployments(), "x"),
        r#"{"metadata":{},"status":"Failure","message":"deployments.apps \"x\" already exists",
            "reason":"AlreadyExists","details":{"name":"x","group":"apps","kind":"deployments"},
            "code":409}"#,
    );
    // META-30
    check(
        &Status::generate_name_conflict(&pods(), "x-abcde", 1),
        r#"{"metadata":{},"status":"Failure","message":"pods \"x-abcde\" already exists, the server was not able to generate a unique name for the object",
            "reason":"AlreadyExists","details":{"name":"x-abcde","kind":"pods","retryAfterSeconds":1},
            "code":409}"#,
    );
    check(
        &Status::stale(&pods(), "x"),
        r#"{"metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on pods \"x\": the object has been modified; please apply your changes to the latest version and try again",
            "reason":"Conflict","details":{"name":"x","kind":"pods"},"code":409}"#,
    );
    check(
        &Status::server_timeout(&deployments(), "list", 2),
        r#"{"metadata":{},"status":"Failure","message":"The list operation against deployments.apps could not be completed at this time, please try again.",
            "reason":"ServerTimeout","details":{"name":"list","group":"apps","kind":"deployments",
            "retryAfterSeconds":2},"code":500}"#,
    );
    check(
        &Status::method_not_allowed(&deployments(), "watch"),
        r#"{"metadata":{},"status":"Failure","message":"watch is not supported on resources of kind \"deployments.apps\"",
            "reason":"MethodNotAllowed","details":{"group":"apps","kind":"deployments"},"code":405}"#,
    );
}

#[test]
fn forbidden_messages_name_the_resource() {
    for (resource, name, message) in [
        (deployments(), "x", r#"deployments.apps "x" is forbidden: why"#),
        (deployments(), "", "deployments.apps is forbidden: why"),
        (GroupResource::default(), "", "forbidden: why"),
    ] {
        let status = Status::forbidden(&resource, name, "why");
        assert_eq!((status.message.as_str(), status.code), (message, 403));
    }
}

#[test]
fn failures_without_an_object_match_upstream() {
    for (status, code, reason, message) in [
        (Status::bad_request("x"), 400, "BadRequest", "x"),
        (Status::unauthorized(), 401, "Unauthorized", "Unauthorized"),
        (
            Status::not_acceptable("application/json"),
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json",
        ),
        (Status::expired("x"), 410, "Expired", "x"),
        (
            Status::too_large("limit is 3"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3",
        ),
        (
            Status::unsupported_media_type("application/json, application/yaml"),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml",
        ),
        (
            Status::unprocessable(),
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        (Status::too_many_requests("x", 1), 429, "TooManyRequests", "x"),
        (Status::internal("x"), 500, "InternalError", "Internal error occurred: x"),
        (Status::service_unavailable("x"), 503, "ServiceUnavailable", "x"),
        (Status::timeout("x", 0), 504, "Timeout", "Timeout: x"),
        (
            Status::no_such_path(),
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (Status::failure(Reason::Unknown, "x"), 500, "", "x"),
    ] {
        let found = (status.code, status.reason.map_or("", Reason::word), status.message.as_str());
        assert_eq!(found, (code, reason, message));
    }
}

#[test]
fn details_match_upstream() {
    check(
        &Status::timeout("x", 0),
        r#"{"metadata":{},"status":"Failure","message":"Timeout: x","reason":"Timeout","details":{},
            "code":504}"#,
    );
    check(
        &Status::internal("x"),
        r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: x",
            "reason":"InternalError","details":{"causes":[{"message":"x"}]},"code":500}"#,
    );
    // RV-29
    check(
        &Status::too_large_resource_version(9, 5),
        r#"{"metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5",
            "reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge",
            "message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
    );
    let mut expired = Status::expired("x");
    expired.continue_token = Some("t".to_owned());
    check(
        &expired,
        r#"{"metadata":{"continue":"t"},"status":"Failure","message":"x","reason":"Expired",
            "code":410}"#,
    );
    // DEL-08
    check(
        &Status::deleted(&pods(), "x", "u"),
        r#"{"metadata":{},"status":"Success","details":{"name":"x","kind":"pods","uid":"u"}}"#,
    );
}

/// VAL-06, VAL-07
#[test]
fn invalid_objects_list_all_errors() {
    let kind = GroupKind::new("apps", "Deployment");
    let path = Path::new("spec").field("replicas");
    let low = field::Error::invalid(&path, &(-1).into(), "must be greater than or equal to 0");
    let missing = field::Error::required(&Path::new("spec").field("selector"), "");
    for (errors, message) in [
        (vec![], r#"Deployment.apps "d" is invalid"#),
        (
            vec![low.clone()],
            r#"Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
        ),
        (
            vec![low.clone(), missing.clone(), low.clone()],
            r#"Deployment.apps "d" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.selector: Required value]"#,
        ),
    ] {
        let status = Status::invalid(&kind, "d", &errors);
        assert_eq!(status.message, message);
        assert_eq!(status.details.expect("it has details").causes.len(), errors.len());
    }
    check(
        &Status::invalid(&kind, "d", &[low]),
        r#"{"metadata":{},"status":"Failure","message":"Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "reason":"Invalid","details":{"name":"d","group":"apps","kind":"Deployment","causes":[
            {"reason":"FieldValueInvalid","message":"Invalid value: -1: must be greater than or equal to 0",
            "field":"spec.replicas"}]},"code":422}"#,
    );
}
