"""Options of the table lock."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "AWS_KEY",
    "AWS_SECRET",
    "AWS_TOKEN",
    "DYNAMODB_BILLING",
    "DYNAMODB_CREATION_MS",
    "DYNAMODB_ENDPOINT",
    "DYNAMODB_KEY",
    "DYNAMODB_READS",
    "DYNAMODB_REGION",
    "DYNAMODB_TABLE",
    "DYNAMODB_WRITES",
    "FILE_LOCK_EXPIRE_MINUTES",
    "FILE_LOCK_FOLDER",
    "LOCK_LEASE_S",
    "LOCK_PROVIDER",
    "LOCK_RENEW_S",
    "LOCK_WAIT_MS",
    "ZOOKEEPER_BASE_PATH",
    "ZOOKEEPER_CONNECTION_MS",
    "ZOOKEEPER_KEY",
    "ZOOKEEPER_PORT",
    "ZOOKEEPER_SESSION_MS",
    "ZOOKEEPER_URL",
]

LOCK_PROVIDER = OPTIONS.text(
    "hoodie.write.lock.provider",
    None,
    "Class name of Hudi's lock provider: StorageBasedLockProvider, which counts when not set, FileSystemBasedLockProvider, "
    "ZookeeperBasedLockProvider, ZookeeperBasedImplicitBasePathLockProvider, DynamoDBBasedLockProvider, "
    "DynamoDBBasedImplicitPartitionKeyLockProvider or InProcessLockProvider. Every writer of the table must use the same.",
)
LOCK_WAIT_MS = OPTIONS.number(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    "How long a writer waits for the table lock, in milliseconds; in DynamoDB also how long a lease lasts.",
)
LOCK_LEASE_S = OPTIONS.count(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    "StorageBasedLockProvider: how long a lease lasts that its owner does not renew, in seconds.",
)
LOCK_RENEW_S = OPTIONS.count(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    "StorageBasedLockProvider: how often the owner renews its lease, in seconds.",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)
FILE_LOCK_FOLDER = OPTIONS.text(
    "hoodie.write.lock.filesystem.path", None, "FileSystemBasedLockProvider: folder of the file `lock`; `.hoodie` when not set."
)
FILE_LOCK_EXPIRE_MINUTES = OPTIONS.number(
    "hoodie.write.lock.filesystem.expire",
    0,
    "FileSystemBasedLockProvider: after how many minutes without a change the file counts as left behind; 0 for never.",
)
ZOOKEEPER_URL = OPTIONS.text(
    "hoodie.write.lock.zookeeper.url", None, "ZookeeperBasedLockProvider: servers as host:port, several by comma."
)
ZOOKEEPER_PORT = OPTIONS.text(
    "hoodie.write.lock.zookeeper.port", None, "ZookeeperBasedLockProvider: port of servers whose address names none."
)
ZOOKEEPER_BASE_PATH = OPTIONS.text(
    "hoodie.write.lock.zookeeper.base_path", None, "ZookeeperBasedLockProvider: node below which locks of tables are."
)
ZOOKEEPER_KEY = OPTIONS.text(
    "hoodie.write.lock.zookeeper.lock_key", None, "ZookeeperBasedLockProvider: the table's node; its name when not set."
)
ZOOKEEPER_SESSION_MS = OPTIONS.count(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    "ZookeeperBasedLockProvider: after how long without a sign of life a writer's lock is free again, in milliseconds.",
)
ZOOKEEPER_CONNECTION_MS = OPTIONS.count(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    "ZookeeperBasedLockProvider: how long a writer waits for an answer of the servers, in milliseconds.",
)
DYNAMODB_TABLE = OPTIONS.text(
    "hoodie.write.lock.dynamodb.table", None, "DynamoDBBasedLockProvider: table of DynamoDB, which is made if there is none."
)
DYNAMODB_KEY = OPTIONS.text(
    "hoodie.write.lock.dynamodb.partition_key",
    None,
    "DynamoDBBasedLockProvider: the lock's item; the table's name when not set.",
)
DYNAMODB_REGION = OPTIONS.text(
    "hoodie.write.lock.dynamodb.region",
    None,
    "DynamoDBBasedLockProvider: region of Amazon; that of AWS_REGION when not set, else us-east-1.",
)
DYNAMODB_ENDPOINT = OPTIONS.text(
    "hoodie.write.lock.dynamodb.endpoint_url", None, "DynamoDBBasedLockProvider: URL of the service; the region's when not set."
)
DYNAMODB_BILLING = OPTIONS.choice(
    "hoodie.write.lock.dynamodb.billing_mode",
    "PAY_PER_REQUEST",
    ["PAY_PER_REQUEST", "PROVISIONED"],
    "DynamoDBBasedLockProvider: how a table that is made is paid.",
)
DYNAMODB_READS = OPTIONS.count(
    "hoodie.write.lock.dynamodb.read_capacity", 20, "DynamoDBBasedLockProvider: reads a second of a PROVISIONED table."
)
DYNAMODB_WRITES = OPTIONS.count(
    "hoodie.write.lock.dynamodb.write_capacity", 10, "DynamoDBBasedLockProvider: writes a second of a PROVISIONED table."
)
DYNAMODB_CREATION_MS = OPTIONS.count(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    600_000,
    "DynamoDBBasedLockProvider: how long a table that is made may take, in milliseconds.",
)
AWS_KEY = OPTIONS.text(
    "hoodie.aws.access.key", None, "DynamoDBBasedLockProvider: access key; without it Amazon's usual places are searched."
)
AWS_SECRET = OPTIONS.text("hoodie.aws.secret.key", None, "DynamoDBBasedLockProvider: secret of the access key.")
AWS_TOKEN = OPTIONS.text("hoodie.aws.session.token", None, "DynamoDBBasedLockProvider: session token of the access key.")
