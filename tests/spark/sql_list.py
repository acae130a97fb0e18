"""Statements of SQL in attached sessions, with where each comes from and what becomes of it: the source of docs/sql.md.

`{format}` stands for the word after USING, `{at}` for the instant of the table's first write, `{done}` for the time of its
completion. The statements of a section run
one after another, in a session that has nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SECTIONS", "Listed"]

SAME = "the same"
"""Apache Hudi 1.0.2 takes the statement, and a query gives the same rows."""


@dataclass(frozen=True)
class Listed:
    """One statement.

    Attributes:
        text: As a user types it.
        source: The page on which it stands.
        hudi: What Apache Hudi 1.0.2 does.
        refused: Part of the error that says why hudimeta refuses it; "" for what works.
        because: The reason, for the page.
        newer: What Apache Hudi 1.2.0 does, where that is something else.
    """

    text: str
    source: str
    hudi: str = SAME
    refused: str = ""
    because: str = ""
    newer: str = ""


_DDL, _DML, _QUERIES, _INDEXES, _EVOLUTION = "SQL DDL", "SQL DML", "SQL queries", "Indexes", "Schema evolution"
_SPARK, _DELTA, _QUICK, _PROCEDURES = "Spark SQL", "Delta Lake", "Quick start", "Procedures"
_NOT_IN_HUDI = "refuses it"
_NOT_NESTED = "refuses it: its vectorised reader takes no changes inside of structs"
_NOT_KNOWN = "does not know it"
_KEEPS_BOTH = "keeps both rows"
_NEEDS_LOCK = "refuses it without `hoodie.write.lock.provider`"
_COLUMNS = "(ts BIGINT, uuid STRING, rider STRING, fare DOUBLE, city STRING)"
_ROWS = (
    "(1, 'u1', 'rider-A', 19.1, 'sf'), (2, 'u2', 'rider-B', 27.7, 'sf'), (3, 'u3', 'rider-C', 33.9, 'paris'), "
    "(4, 'u4', 'rider-D', 1.5, 'oslo')"
)
_CREATE = Listed(
    f"CREATE TABLE IF NOT EXISTS trips {_COLUMNS} USING {{format}} "
    "TBLPROPERTIES (type = 'cow', primaryKey = 'uuid', preCombineField = 'ts') PARTITIONED BY (city)",
    _DDL,
)
_INSERT = Listed(f"INSERT INTO trips VALUES {_ROWS}", _DML)
_SHOWN = Listed("SELECT uuid, fare, city FROM trips", _QUERIES)

SECTIONS: dict[str, list[Listed]] = {
    "Tables": [
        _CREATE,
        _INSERT,
        Listed("CREATE TABLE kept USING {format} TBLPROPERTIES (primaryKey = 'uuid') AS SELECT uuid, fare FROM trips", _DDL),
        Listed("SELECT * FROM kept", _QUERIES, "the same, after its meta columns"),
        Listed("CREATE TABLE alike LIKE trips USING {format}", _SPARK),
        Listed("SELECT uuid, fare FROM alike", _QUERIES),
        Listed("SHOW PARTITIONS trips", _DDL),
        Listed("ALTER TABLE trips DROP PARTITION (city = 'oslo')", _DDL),
        Listed("TRUNCATE TABLE trips PARTITION (city = 'paris')", _DDL),
        Listed("SHOW PARTITIONS trips", _DDL),
        _SHOWN,
        Listed(
            "ALTER TABLE trips ADD IF NOT EXISTS PARTITION (city = 'rome')",
            _DDL,
            "makes an empty folder",
        ),
        Listed("ALTER TABLE trips SET TBLPROPERTIES ('hoodie.keep.max.commits' = '40')", _DDL),
        Listed("ALTER TABLE trips UNSET TBLPROPERTIES ('hoodie.keep.max.commits')", _DDL),
        Listed("ALTER TABLE trips SET TBLPROPERTIES (hoodie.keep.max.commits = '50')", _DDL),
        Listed("ALTER TABLE trips UNSET TBLPROPERTIES IF EXISTS (hoodie.keep.max.commits)", _DDL),
        Listed("ALTER TABLE trips SET SERDEPROPERTIES ('hoodie.keep.max.commits' = '60')", _DDL),
        Listed("ALTER TABLE trips ADD COLUMNS (note STRING COMMENT 'said by riders')", _DDL),
        Listed("ALTER TABLE trips ALTER COLUMN fare COMMENT 'in euros'", _DDL),
        Listed("SELECT uuid, fare, note FROM trips", _QUERIES),
        Listed("SHOW CREATE TABLE trips", _SPARK, "the same, with its meta columns"),
        Listed("DESCRIBE TABLE EXTENDED trips", _SPARK, "the same, with its meta columns"),
        Listed("SHOW TBLPROPERTIES trips", _SPARK, "the same, with `path`"),
        Listed("ALTER TABLE kept RENAME TO renamed", _DDL),
        Listed("SELECT uuid FROM renamed", _QUERIES),
        Listed("CREATE OR REPLACE TABLE renamed USING {format} AS SELECT 7 AS n", _SPARK, _NOT_IN_HUDI),
        Listed("REPLACE TABLE renamed (m INT) USING {format}", _SPARK, _NOT_IN_HUDI),
        Listed(
            "ALTER TABLE trips REPLACE COLUMNS (uuid STRING)",
            _SPARK,
            _NOT_IN_HUDI,
            "HUDIMETA_UNSUPPORTED",
            "columns are added, renamed, retyped and dropped one by one",
        ),
        Listed("ALTER TABLE trips ALTER COLUMN fare FIRST", _EVOLUTION, _NOT_IN_HUDI),
        Listed("ALTER TABLE trips ALTER COLUMN note AFTER uuid", _EVOLUTION, _NOT_IN_HUDI),
        Listed("CREATE TABLE defaults (id INT, n INT DEFAULT 3) USING {format}", _SPARK, _NOT_IN_HUDI),
        Listed("INSERT INTO defaults (id) VALUES (1)", _DML, _NOT_IN_HUDI),
        Listed("INSERT INTO defaults VALUES (2, DEFAULT), (3, 4)", _DML, _NOT_IN_HUDI),
        Listed("ALTER TABLE defaults ALTER COLUMN n SET DEFAULT 5", _SPARK, _NOT_IN_HUDI),
        Listed("UPDATE defaults SET n = DEFAULT WHERE id = 3", _DML, _NOT_IN_HUDI),
        Listed("ALTER TABLE defaults ALTER COLUMN n DROP DEFAULT", _SPARK, _NOT_IN_HUDI),
        Listed("SELECT id, n FROM defaults", _QUERIES, _NOT_IN_HUDI),
        Listed(
            "ALTER TABLE trips ADD COLUMNS (more INT DEFAULT 1)",
            _SPARK,
            "passes over the default value",
            "SET DEFAULT",
            "rows that are there would need it: add the column, update the rows, then `SET DEFAULT`",
        ),
        Listed("CREATE TABLE vectors (id INT, emb VECTOR(2), doc BLOB) USING {format}", _DDL, _NOT_IN_HUDI, newer=SAME),
        Listed("INSERT INTO vectors VALUES (1, array(0.5f, 1f), NULL)", _DML, _NOT_IN_HUDI, newer=SAME),
        Listed("SELECT id, emb, doc FROM vectors", _QUERIES, _NOT_IN_HUDI, newer=SAME),
        Listed("SELECT id FROM hudi_vector_search('vectors', 'emb', array(1, 2), 5, 'l2')", _QUERIES, _NOT_IN_HUDI, newer=SAME),
        Listed(
            "SELECT id, _hudi_query_id FROM hudi_vector_search_batch('vectors', 'emb', 'vectors', 'emb', 5)",
            _QUERIES,
            _NOT_IN_HUDI,
            newer=SAME,
        ),
        Listed("CREATE TABLE lengths (id INT, v VARCHAR(3), c CHAR(4)) USING {format}", _SPARK),
        Listed("INSERT INTO lengths VALUES (1, 'abcd', 'ab')", _DML),
        Listed("SELECT id, v, c FROM lengths", _QUERIES),
        Listed("DROP TABLE IF EXISTS alike", _DDL),
        Listed("TRUNCATE TABLE trips", _DDL),
        _SHOWN,
        Listed(
            "ALTER TABLE trips SET LOCATION '/elsewhere'",
            _SPARK,
            "changes its catalog alone, and then finds no table",
            "HUDIMETA_UNSUPPORTED",
            "the table's own files would stay where they are",
        ),
    ],
    "Rows": [
        _CREATE,
        _INSERT,
        Listed("INSERT INTO trips (uuid, city, ts, fare) VALUES ('u5', 'rome', 5, 5.5)", _DML),
        Listed("INSERT INTO trips PARTITION (city = 'rome') SELECT 6, 'u6', 'rider-F', 6.5", _DML),
        Listed("INSERT INTO trips SELECT 'lima' AS city, 'u13' AS uuid, 'rider-M' AS rider, 1.5D AS fare, 13L AS ts", _DML),
        Listed("UPDATE trips SET fare = fare * 2, ts = ts + 10 WHERE rider = 'rider-A'", _DML),
        Listed("DELETE FROM trips WHERE uuid = 'u2'", _DML),
        Listed(
            "MERGE INTO trips t USING (SELECT 'u3' AS uuid, 'paris' AS city, 30L AS ts, 3.25D AS fare) s ON t.uuid = s.uuid "
            "WHEN MATCHED THEN UPDATE SET fare = s.fare, ts = s.ts",
            _DML,
        ),
        Listed(
            "MERGE INTO trips t USING (SELECT 31L AS ts, 'u7' AS uuid, 'rider-G' AS rider, 7.5D AS fare, 'oslo' AS city) s "
            "ON t.uuid = s.uuid WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _DML,
        ),
        _SHOWN,
        Listed("INSERT OVERWRITE trips PARTITION (city = 'oslo') SELECT 8, 'u8', 'rider-H', 8.5", _DML),
        _SHOWN,
        Listed(
            "CREATE TABLE hours (id INT, day STRING, hour STRING) USING {format} TBLPROPERTIES (primaryKey = 'id') "
            "PARTITIONED BY (day, hour)",
            _DDL,
        ),
        Listed("INSERT INTO hours VALUES (1, 'd1', 'h1'), (2, 'd1', 'h2'), (3, 'd2', 'h1')", _DML),
        Listed("INSERT OVERWRITE hours PARTITION (day = 'd1', hour) SELECT 4, 'h3'", _SPARK),
        Listed("SELECT id, day, hour FROM hours", _QUERIES),
        Listed(
            "INSERT OVERWRITE hours PARTITION (day = 'd1', hour = 'h3') IF NOT EXISTS SELECT 5",
            _SPARK,
            "overwrites the partition that is there",
        ),
        Listed("FROM trips INSERT INTO trips SELECT ts + 9, concat(uuid, '-9'), rider, fare, city WHERE uuid = 'u6'", _SPARK),
        _SHOWN,
        Listed("SET hoodie.sql.bulk.insert.enable = true", _DML),
        Listed("SET hoodie.sql.insert.mode = non-strict", _DML),
        Listed("INSERT INTO trips VALUES (2, 'u12', 'rider-L', 0.5, 'rome'), (1, 'u12', 'rider-L', 1.5, 'rome')", _DML),
        Listed("SELECT ts, uuid, fare FROM trips WHERE city = 'rome'", _QUERIES, newer=_KEEPS_BOTH),
        Listed("SET hoodie.sql.insert.mode = strict", _DML),
        Listed(
            "INSERT INTO trips VALUES (1, 'u1', 'rider-A', 1.5, 'rome')",
            _DML,
            _NOT_IN_HUDI,
            "hoodie.sql.insert.mode",
            "a bulk insert looks for no keys",
        ),
        Listed("RESET hoodie.sql.insert.mode", _SPARK),
        Listed("RESET hoodie.sql.bulk.insert.enable", _SPARK),
        Listed("INSERT INTO trips REPLACE WHERE city = 'oslo' VALUES (9, 'u9', 'rider-I', 9.5, 'oslo')", _SPARK, _NOT_IN_HUDI),
        Listed(
            "MERGE WITH SCHEMA EVOLUTION INTO trips t USING (SELECT *, 'new' AS note FROM trips) s ON t.uuid = s.uuid "
            "WHEN MATCHED THEN UPDATE SET *",
            _SPARK,
            _NOT_KNOWN,
        ),
        Listed("EXPLAIN UPDATE trips SET fare = 0", _SPARK),
        Listed("BEGIN UPDATE trips SET fare = 2 WHERE uuid = 'u6'; SELECT uuid, fare FROM trips; END", _SPARK, _NOT_KNOWN),
        Listed(
            "BEGIN DECLARE most DOUBLE DEFAULT 5; IF most > (SELECT min(fare) FROM trips) THEN "
            "UPDATE trips SET fare = most WHERE fare < most; END IF; END",
            _SPARK,
            _NOT_KNOWN,
        ),
        Listed(
            "UPDATE trips SET uuid = 'u0' WHERE uuid = 'u1'",
            _DML,
            _NOT_IN_HUDI,
            "neither part of the key nor of the partition",
            "a row's key says which row it is",
        ),
        Listed("UPDATE trips SET nope = 1", _SPARK, _NOT_IN_HUDI, "columns of the table", "there is no such column"),
        Listed("UPDATE trips SET fare = array(1)", _SPARK, _NOT_IN_HUDI, "CANNOT_SAFELY_CAST", "Spark's rules of assignment"),
        Listed("UPDATE trips SET ts = '1697516137' WHERE rider = 'rider-A'", _QUERIES),
        Listed("DELETE FROM nothing WHERE id = 1", _SPARK, _NOT_IN_HUDI, "TABLE_OR_VIEW_NOT_FOUND", "there is no such table"),
        Listed(
            "FROM trips INSERT INTO trips (uuid, city, ts, fare) SELECT 'u10', city, ts, fare WHERE uuid = 'u7' "
            "INSERT INTO trips (uuid, city, ts, fare) SELECT 'u11', city, ts, fare WHERE uuid = 'u7'",
            _SPARK,
            "takes it, and writes nothing",
            newer=_NOT_IN_HUDI,
        ),
    ],
    "Schema evolution": [
        _CREATE,
        _INSERT,
        Listed("SET hoodie.schema.on.read.enable = true", _EVOLUTION),
        Listed("ALTER TABLE trips ADD COLUMNS (ext0 STRING)", _EVOLUTION),
        Listed("ALTER TABLE trips ADD COLUMNS (new_col INT NOT NULL COMMENT 'add new column' AFTER rider)", _EVOLUTION),
        Listed("INSERT INTO trips VALUES (9, 'u9', 'rider-I', 1, 9.5, 'ext', 'rome')", _DML),
        Listed("SELECT uuid, rider, new_col, fare, ext0, city FROM trips", _QUERIES),
        Listed(
            "CREATE TABLE nested (id INT, pair STRUCT<a: INT, b: STRING>, named MAP<STRING, STRUCT<n: STRING>>) USING {format} "
            "TBLPROPERTIES (primaryKey = 'id')",
            _DDL,
        ),
        Listed("INSERT INTO nested SELECT 1, named_struct('a', 2, 'b', 'x'), map('k', named_struct('n', 'y'))", _DML),
        Listed("ALTER TABLE nested ADD COLUMNS (pair.c STRING COMMENT 'a field of a struct' AFTER a)", _EVOLUTION),
        Listed("ALTER TABLE nested ADD COLUMNS (named.value.m INT)", _EVOLUTION),
        Listed("ALTER TABLE nested ALTER COLUMN pair.a COMMENT 'new comment'", _EVOLUTION),
        Listed("ALTER TABLE nested ALTER COLUMN pair.b FIRST", _EVOLUTION),
        Listed("ALTER TABLE nested ALTER COLUMN pair.b AFTER a", _EVOLUTION),
        Listed("ALTER TABLE nested ALTER COLUMN pair.b DROP NOT NULL", _EVOLUTION),
        Listed("ALTER TABLE nested RENAME COLUMN pair.b TO d", _EVOLUTION),
        Listed("SELECT id, pair.a, pair.d, pair.c, named['k'].n, named['k'].m FROM nested", _QUERIES, _NOT_NESTED),
        Listed("ALTER TABLE nested DROP COLUMN pair.c", _EVOLUTION),
        Listed("SELECT id, to_json(pair) FROM nested", _QUERIES, _NOT_NESTED),
        Listed("ALTER TABLE nested ALTER COLUMN pair.a TYPE BIGINT", _EVOLUTION),
        Listed("SELECT id, pair.a FROM nested", _QUERIES, _NOT_NESTED),
        Listed(
            "CREATE TABLE grown (id INT, day STRING, n INT, x DOUBLE) USING {format} TBLPROPERTIES (primaryKey = 'id')", _DDL
        ),
        Listed("INSERT INTO grown VALUES (1, '2026-01-31', 5, 2.25)", _DML),
        Listed("ALTER TABLE grown ALTER COLUMN day TYPE DATE", _EVOLUTION),
        Listed("ALTER TABLE grown ALTER COLUMN n TYPE DECIMAL(14, 2)", _EVOLUTION),
        Listed("ALTER TABLE grown ALTER COLUMN x TYPE DECIMAL(14, 1)", _EVOLUTION),
        Listed("SELECT id, day, n, x FROM grown", _QUERIES),
        Listed("ALTER TABLE trips DROP COLUMNS ext0, new_col", _EVOLUTION, newer=_NOT_IN_HUDI),
        Listed("ALTER TABLE trips CHANGE COLUMN fare fare DOUBLE COMMENT 'in euros' AFTER uuid", _SPARK),
        Listed(
            "ALTER TABLE trips ALTER COLUMN rider TYPE DATE",
            _EVOLUTION,
            refused="HUDIMETA_SCHEMA_EVOLUTION",
            because="texts that are no dates could not be read any more: update those first, or add a column and fill it",
        ),
        _SHOWN,
        Listed("RESET hoodie.schema.on.read.enable", _SPARK),
    ],
    "Merge modes": [
        _CREATE,
        Listed(
            "CREATE TABLE by_time (id INT, name STRING, ts LONG, price DOUBLE) USING {format} TBLPROPERTIES (type = 'mor', "
            "primaryKey = 'id', precombineField = 'ts', recordMergeMode = 'EVENT_TIME_ORDERING')",
            _QUERIES,
        ),
        Listed("INSERT INTO by_time VALUES (1, 'a1', 1000, 10.0)", _QUERIES),
        Listed("INSERT INTO by_time VALUES (1, 'a1', 900, 20.0)", _QUERIES),
        Listed("SELECT id, name, ts, price FROM by_time", _QUERIES, newer=_KEEPS_BOTH),
        Listed(
            "CREATE TABLE by_class (id INT, name STRING, ts LONG, price DOUBLE) USING {format} TBLPROPERTIES (type = 'mor', "
            "primaryKey = 'id', precombineField = 'ts', recordMergeMode = 'CUSTOM', "
            "'hoodie.datasource.write.payload.class' = 'org.apache.hudi.common.model.PartialUpdateAvroPayload')",
            _QUERIES,
        ),
        Listed("INSERT INTO by_class VALUES (1, 'a1', 1000, 10.0)", _QUERIES, newer=_NOT_IN_HUDI),
        Listed("INSERT INTO by_class VALUES (1, null, 2000, 20.0)", _QUERIES, newer=_NOT_IN_HUDI),
        Listed("SELECT id, name, ts, price FROM by_class", _QUERIES, newer="has no rows"),
    ],
    "Queries": [
        _CREATE,
        _INSERT,
        Listed("INSERT INTO trips VALUES (10, 'u1', 'rider-A', 0.5, 'sf')", _DML),
        Listed("SELECT uuid, fare FROM trips TIMESTAMP AS OF '{at}' WHERE fare > 2", _QUERIES),
        Listed(
            "SELECT n.uuid, n.fare - o.fare AS more FROM trips n JOIN trips TIMESTAMP AS OF '{at}' o ON n.uuid = o.uuid",
            _QUERIES,
            newer=_KEEPS_BOTH,
        ),
        Listed("SELECT uuid, fare FROM hudi_table_changes('trips', 'latest_state', 'earliest')", _QUICK, newer=_KEEPS_BOTH),
        Listed(
            "SELECT uuid, fare FROM hudi_table_changes('trips', 'latest_state', '{done}')",
            _QUICK,
            "gives the commit that was complete at that time as well",
            newer=SAME,
        ),
        Listed("SELECT uuid, fare FROM hudi_table_changes('trips', 'latest_state', 'earliest', '{done}')", _QUICK),
        Listed("SELECT uuid, fare FROM hudi_query('trips', 'read_optimized')", _QUERIES, newer=_KEEPS_BOTH),
        Listed("SELECT uuid, fare FROM trips VERSION AS OF {at}", _QUERIES, _NOT_IN_HUDI),
        Listed("SELECT _hoodie_record_key, _hoodie_partition_path FROM trips WHERE fare > 20", _QUERIES),
        Listed("CREATE TEMPORARY VIEW earlier AS SELECT uuid, fare FROM trips TIMESTAMP AS OF '{at}'", _QUERIES, _NOT_IN_HUDI),
        Listed("SELECT * FROM earlier", _QUERIES, _NOT_IN_HUDI),
        Listed("DROP VIEW earlier", _SPARK, _NOT_IN_HUDI),
        Listed(
            "SELECT uuid FROM trips VERSION AS OF 3",
            _DELTA,
            _NOT_IN_HUDI,
            "DESCRIBE HISTORY",
            "versions of a Hudi table are its instants",
        ),
    ],
    "Indexes": [
        _CREATE,
        _INSERT,
        Listed("CREATE INDEX record_index ON trips (uuid)", _INDEXES, newer=_NEEDS_LOCK),
        Listed("CREATE INDEX by_rider ON trips (rider)", _INDEXES, newer=_NEEDS_LOCK),
        Listed(
            "CREATE INDEX by_day ON trips USING column_stats(ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd')",
            _INDEXES,
            newer=_NEEDS_LOCK,
        ),
        Listed(
            "CREATE INDEX of_riders ON trips USING bloom_filters(rider) OPTIONS (expr = 'lower')", _INDEXES, newer=_NEEDS_LOCK
        ),
        Listed("SHOW INDEXES FROM trips", _INDEXES, newer="shows those that it has"),
        Listed("SELECT type, array_sort(map_keys(filesystemMetadata)) FROM hudi_metadata('trips') WHERE type = 1", _QUERIES),
        Listed("SELECT type, key FROM hudi_metadata('trips') WHERE type = 5", _QUERIES, newer="shows those that it has"),
        Listed("SELECT ColumnStatsMetadata FROM hudi_metadata('trips') WHERE type = 3", _QUERIES, "the same, of its own files"),
        Listed("SELECT uuid, fare FROM trips WHERE rider = 'rider-B'", _QUERIES),
        Listed("REFRESH INDEX by_rider ON trips", _INDEXES),
        Listed("DROP INDEX IF EXISTS nothing ON trips", _INDEXES),
        Listed("DROP INDEX expr_index_by_day ON trips", _INDEXES, newer=_NEEDS_LOCK),
        Listed("CREATE INDEX by_rider2 ON trips USING secondary_index(rider)", _DDL, _NOT_IN_HUDI),
        Listed("DROP INDEX secondary_index_by_rider2 ON trips", _QUERIES, _NOT_IN_HUDI),
        Listed(
            "DROP INDEX column_stats ON trips",
            _QUERIES,
            "drops both",
            refused="Drop these first",
            because="`partition_stats` rests on it: drop that first",
            newer=_NEEDS_LOCK,
        ),
        Listed("DROP INDEX partition_stats ON trips", _QUERIES, newer=_NEEDS_LOCK),
        Listed("DROP INDEX column_stats ON trips", _QUERIES, newer=_NEEDS_LOCK),
        Listed("SHOW INDEXES FROM trips", _INDEXES, newer="shows those that it has"),
        Listed("DROP INDEX nothing ON trips", _INDEXES, _NOT_IN_HUDI, "an index of the table", "there is no such index"),
    ],
    "Services": [
        _CREATE,
        _INSERT,
        Listed("CALL help", _PROCEDURES),
        Listed(
            "CREATE TABLE logged (id INT, ts BIGINT) USING {format} TBLPROPERTIES (type = 'mor', primaryKey = 'id', "
            "preCombineField = 'ts')",
            _DDL,
        ),
        Listed("INSERT INTO logged VALUES (1, 1)", _DML),
        Listed("SCHEDULE COMPACTION ON logged", _PROCEDURES),
        Listed("RUN COMPACTION ON logged", _PROCEDURES),
        Listed("SHOW COMPACTION ON logged LIMIT 5", _PROCEDURES),
        Listed("DESCRIBE HISTORY trips LIMIT 5", _DELTA, _NOT_KNOWN),
        Listed("DESCRIBE DETAIL trips", _DELTA, _NOT_KNOWN),
        Listed("OPTIMIZE trips WHERE city = 'sf' ZORDER BY (fare, ts)", _DELTA, _NOT_KNOWN),
        Listed("VACUUM trips RETAIN 168 HOURS DRY RUN", _DELTA, _NOT_KNOWN),
        Listed("RESTORE TABLE trips TO VERSION AS OF {at}", _DELTA, _NOT_KNOWN),
        Listed("ANALYZE TABLE trips COMPUTE STATISTICS", _SPARK, "computes statistics of its catalog"),
        Listed("SET hoodie.metadata.enable = true", _DML),
        Listed("RESET hoodie.metadata.enable", _SPARK),
        Listed("SET hoodie.metadata.enabled = true", _DML, "passes over it", "hoodie.metadata.enable", "a slip"),
        _SHOWN,
    ],
}
"""By what they are about."""
