"""What Spark, Flink, Beam, Kafka Streams, pandas and others call it, and the line to write here instead.

Names are in lower case and without underscores, so that `withColumn` and `with_column` are equal.
"""

from __future__ import annotations

_SINK = 'ps.sqlite("answers.db", table="totals")'
_RUN = f'ps.pipeline("totals", totals.write({_SINK})).run(checkpoint="checkpoints/totals")'
LOOK = '.write(ps.console()), or .write(seen) with seen = ps.memory("seen"), run it, and look at seen.rows'
_WINDOW = '.window(ps.tumbling("5 minutes"))'
_SLIDING = '.window(ps.sliding("1 hour", every="5 minutes"))'
_SESSION = '.window(ps.session("30 minutes"))'
_AGGREGATE = '.aggregate(points=ps.sum("points"), plays=ps.rows())'
_TIME = '.event_time("at", watermark=ps.bounded("5 seconds"))'
_DEDUP = '.dedup("id", within="1 hour")'
_MAP = '.map(lambda row: {**row, "points": row["points"] * 2})'
_PROCESS = ".process(MyFunction()), with a class that inherits from ps.KeyedFunction"
_JOIN = '.join(others, on="id", between=("0 seconds", "10 minutes"), prefix="other_")'
_TOP = '.top(10, by="points", window=ps.tumbling("1 hour")); .process(…, ordered=True) sees rows in order of time'
_LATE = '.window(ps.tumbling("5 minutes"), lateness="1 hour"), and totals.late.write(…) for what comes later still'
_ONCE = ".trigger(ps.at_watermark()), which is so unless something else is said: one pane when the window is complete"
_RENAME = '.select("team", score="points")'
_NOTHING = "leave it out; shards= of ps.pipeline says how many tasks share the keys"


def _table(*lines: tuple[str, str]) -> dict[str, str]:
    return {name: instead for names, instead in lines for name in names.split()}


STREAM = _table(
    ("filter query loc", '.where("points > 10")'),
    ("withcolumn assign extend mutate withfield", '.with_columns(double="points * 2")'),
    ("withcolumnrenamed withcolumnsrenamed rename alias todf", _RENAME),
    ("drop", '.select("team", "points"), with the columns that stay'),
    ("selectexpr project", '.select("team", double="points * 2")'),
    ("withwatermark watermark assigntimestampsandwatermarks withtimestamp timestampby settimestamp", _TIME),
    ("groupby groupbykey partitionby", '.key_by("team")'),
    ("agg sum avg mean count min max reduce groupedreduce combineperkey", f"{_WINDOW}{_AGGREGATE}"),
    ("fold", f'{_WINDOW}.aggregate(answer=ps.fold("points", MyFold(), type="long"))'),
    ("orderby sort sortvalues sortwithinpartitions nlargest", _TOP),
    ("limit head take first tail sample", LOOK),
    ("show collect topandas toarrow tolocaliterator display print printstream executeandcollect tolist", LOOK),
    ("printschema columns dtypes describe info", ".schema, as in print(stream.schema)"),
    ("distinct dropduplicates dropduplicateswithinwatermark unique", _DEDUP),
    (
        "writestream tosink sinkto addsink sink to totable totopic tocsv tojson toparquet save saveastable",
        f".write({_SINK})",
    ),
    ("run start execute awaittermination", _RUN),
    ("foreachbatch foreach foreachpartition", ".write(ps.foreach_batch(function))"),
    ("windowall windowby windowedby windowinto timewindow tumblingwindow tumble groupbydynamic resample", _WINDOW),
    ("hoppingwindow slidingwindow hop rolling", _SLIDING),
    ("sessionwindow", _SESSION),
    ("countwindow", ".window(ps.global_window()).trigger(ps.repeat(ps.count(100))).discarding()"),
    ("allowedlateness withallowedlateness grace sideoutputlatedata getsideoutput late", _LATE),
    ("quarantine", "totals.quarantine.write(…), where totals is what comes of windows or of a stage"),
    ("explain check", "totals.explain(), where totals is what comes of windows or of a stage"),
    (
        "flatmap explode mappartitions mapinarrow mapinpandas",
        ".map_batches(function, schema=…), which may give more rows than it was given",
    ),
    ("apply transform pipe mapvalues mapelements foreachrow pardo", _MAP),
    (
        "applyinpandas applyinpandaswithstate transformwithstate transformwithstateinpandas mapgroupswithstate "
        "flatmapgroupswithstate flatmapgroups statefulmap keyedprocess",
        _PROCESS,
    ),
    ("merge joinleft innerjoin leftjoin outerjoin intervaljoin connect cogroup crossjoin", _JOIN),
    (
        "lookup lookupjoin broadcastjoin",
        '.join_table(ps.table("teams.csv", schema="team string, town string"), on="team")',
    ),
    ("asof asofjoin joinasof mergeasof", '.temporal_join(versions, on="team")'),
    ("unionall unionbyname concat append flatten", ".union(others)"),
    ("cast astype", '.with_columns(points="cast(points as long)")'),
    ("fillna na", '.with_columns(points="coalesce(points, 0)")'),
    ("dropna isnull notnull", '.where("points is not null")'),
    (
        "cache persist unpersist repartition coalesce rebalance rescale shuffle setparallelism uid checkpoint hint",
        _NOTHING,
    ),
    ("isstreaming", "nothing: a stream that ends is run to its end, any other until it is stopped"),
)
WINDOWED = _table(
    ("agg reduce sum avg mean count min max fold apply process collect", _AGGREGATE),
    ("final emitonwindowclose suppress", f"{_ONCE}: {_AGGREGATE}"),
    ("current emitonupdate", f".trigger(ps.repeat(ps.count(1))).accumulating(){_AGGREGATE}"),
    ("withallowedlateness allowedlateness grace", _LATE),
    ("triggering emit", '.trigger(ps.at_watermark(early=ps.every("1 minute")))'),
    ("outputmode accumulationmode", ".accumulating(), .discarding() or .retracting()"),
    ("write writestream show", f"{_AGGREGATE}.write({_SINK})"),
    ("explain check late quarantine", f"{_AGGREGATE} first: what comes of it has that"),
)
RESULTS = _table(
    ("run start execute awaittermination", _RUN),
    ("show collect topandas toarrow display print head take limit", LOOK),
    ("outputmode", ".accumulating(), .discarding() or .retracting() before .aggregate(…)"),
    ("orderby sort", '.stream.top(10, by="points", window=…), or order the rows where they are read'),
    ("filter", '.stream.where("points > 10")'),
    ("writestream sinkto tosink sink to", f".write({_SINK})"),
    ("schema columns printschema", ".stream.schema"),
)
OUTPUT = _table(
    ("run start execute awaittermination", 'ps.pipeline("totals", output).run(checkpoint="checkpoints/totals")'),
    ("write", 'ps.pipeline("totals", totals.write(one), totals.write(other)), to write to two places'),
    (
        "trigger outputmode option options",
        'ps.pipeline("totals", output).run(checkpoint="…", batch_every="10 seconds")',
    ),
)
PIPELINE = _table(
    ("execute awaittermination processalltuples", '.run(checkpoint="checkpoints/totals")'),
    (
        "stop wait isactive status lastprogress running",
        'handle = pipeline.start(checkpoint="checkpoints/totals"), then handle.stop() or handle.wait()',
    ),
    ("write add addoutput", 'ps.pipeline("totals", totals.write(one), totals.late.write(other))'),
)
HANDLE = _table(
    ("awaittermination join processallavailable result", ".wait()"),
    ("isactive isrunning", ".running"),
    ("lastprogress recentprogress progress", ".status"),
    ("exception", ".wait(), which raises what made it fail"),
    ("cancel terminate close", ".stop()"),
)
COLUMN = _table(
    ("isnull isna", ".is_null()"),
    ("isnotnull notnull notna", ".is_not_null()"),
    ("isin", ".is_in([1, 2])"),
    ("astype", '.cast("long")'),
    ("alias name", '.with_columns(double=ps.col("points") * 2): the name stands before the expression'),
    ("eq equalto eqnullsafe", '== , as in ps.col("team") == "red"'),
    ("sum avg mean min max count", '.aggregate(points=ps.sum("points"))'),
    (
        "like rlike startswith endswith contains substr upper lower length when otherwise",
        """SQL text, as in "lower(team) = 'red'" or "case when points > 3 then 1 else 0 end" """.strip(),
    ),
    ("desc asc", '.top(10, by="points", best="greatest")'),
)
PATTERN = _table(
    ("followedby", '.then("b", "points > 2")'),
    ("followedbyany", '.then_any("b", "points > 2")'),
    ("begin where", 'ps.pattern("a", "points > 2").then("b", "points > 5"): the condition stands after the name'),
    ("oneormore timesormore", ".one_or_more()"),
    ("notfollowedby", ".without(…)"),
    ("subtype oftype", 'a condition, as in ps.pattern("a", "kind = 3")'),
)
BRANCH = _table(("stream where map select", "a pipeline of its own that reads the place where these rows are written"))
TABLE = _table(
    (
        "where filter select map withcolumns",
        "a table is read as it is: change the rows that come of .join_table(table, on=…)",
    ),
    ("join", '.join_table(table, on="team") on the stream'),
)
PACKAGE = _table(
    ("avg average", 'ps.mean("points")'),
    ("stddev std var", 'ps.variance("points")'),
    ("countdistinct approxcountdistinct nunique", 'ps.distinct("user") or ps.approx_distinct("user")'),
    ("maxby argmax", 'ps.arg_max("team", "points")'),
    ("minby argmin", 'ps.arg_min("team", "points")'),
    ("collectlist collectset list", 'ps.collect("points")'),
    ("expr sql when", 'SQL text, as in .where("points > 10")'),
    ("tumblingwindow tumble window", 'ps.tumbling("5 minutes")'),
    ("slidingwindow hopping hop hoppingwindow", 'ps.sliding("1 hour", every="5 minutes")'),
    ("sessionwindow sessions", 'ps.session("30 minutes")'),
    (
        "readcsv readjson readparquet fromfiles fromdirectory read",
        'ps.directory("scores/", schema="team string, at timestamp")',
    ),
    ("readstream fromdataframe", "ps.stream(df)"),
    (
        "fromkafka readkafka kafkasource topic",
        'ps.kafka("scores", servers="localhost:9092", schema="team string, at timestamp")',
    ),
    ("kafkasink sinkkafka writekafka", 'ps.to_kafka("totals", servers="localhost:9092")'),
    ("print show", "ps.console()"),
    ("parquet csv json", 'ps.files("answers/") to write, ps.directory("scores/", schema=…) to read'),
    ("postgresql jdbc", 'ps.postgres("postgresql://…", table="totals")'),
    (
        "fromlist fromitems fromrows generator",
        'ps.table([{"team": "red"}], schema="team string"), or ps.game_scores() for events that are made up',
    ),
    ("watermark boundedoutoforderness forboundedoutoforderness", 'ps.bounded("5 seconds")'),
    ("afterwatermark", "ps.at_watermark()"),
    ("aftercount", "ps.count(100)"),
    ("afterprocessingtime", 'ps.after("1 minute")'),
    ("repeatedly", "ps.repeat(…)"),
    ("col column", 'ps.col("points")'),
)
TRIGGER = _table(
    ("or any orfinally", "a | b, for either of two triggers"),
    ("and all", "a & b, for both of two triggers"),
    ("repeatedly forever repeat", "ps.repeat(trigger)"),
    ("withearlyfirings early", 'ps.at_watermark(early=ps.every("1 minute"))'),
    ("withlatefirings late", "ps.at_watermark(late=ps.count(1))"),
)
WINDOW = _table(
    ("every by advanceby on", 'ps.sliding("1 hour", every="5 minutes")'),
    ("grace allowedlateness withallowedlateness lateness", _LATE),
    ("trigger triggering", '.window(ps.tumbling("5 minutes")).trigger(ps.at_watermark(early=ps.every("1 minute")))'),
    ("aggregate agg", f"{_WINDOW}{_AGGREGATE}"),
)
AGGREGATE = _table(
    ("alias name rename", '.aggregate(points=ps.sum("points")): the name stands before the aggregate'),
    ("filter", """ps.sum("points", where="team = 'red'")"""),
    ("over window", f"{_WINDOW}{_AGGREGATE}"),
)
CONTEXT = _table(
    ("collect out output yield forward", "context.emit(team=…, points=…)"),
    ("sideoutput", 'context.emit_to("name", …)'),
    ("registereventtimetimer registertimer settimer schedule", 'context.timer("10 minutes")'),
    ("registerprocessingtimetimer", 'context.timer("10 minutes", kind="processing")'),
    ("deletetimer deleteeventtimetimer", "context.cancel(…)"),
    ("timestamp eventtime", "context.time"),
    ("currentwatermark", "context.watermark"),
    ("processingtime currentprocessingtime", "context.now"),
    (
        "state getstate getvaluestate getliststate getmapstate key getcurrentkey",
        'self.total, with total = ps.value("long", default=0) in the class; the key is the second argument of on_event',
    ),
)
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "Stream": ("a stream", STREAM),
    "Rows": ("a stream", STREAM),
    "Windowed": ("a stream in windows", WINDOWED),
    "Panes": ("what comes of windows", RESULTS),
    "Branch": ("a branch of rows beside the results", BRANCH),
    "Output": ("an output", OUTPUT),
    "Pipeline": ("a pipeline", PIPELINE),
    "Handle": ("a pipeline that runs", HANDLE),
    "Col": ("a column", COLUMN),
    "Pattern": ("a pattern", PATTERN),
    "Table": ("a table", TABLE),
    "Context": ("the context", CONTEXT),
    "Trigger": ("a trigger", TRIGGER),
    "WindowRule": ("a window", WINDOW),
    "Aggregate": ("an aggregate", AGGREGATE),
}

CALLS = {
    ".aggregate": f"name what is computed: {_AGGREGATE}",
    ".with_columns": 'name what is computed: .with_columns(double="points * 2")',
    ".split": 'name the parts: .split(high="points > 10", low="points <= 10")',
    ".where": """give a condition, as in .where("points > 10 and team = 'red'")""",
    ".map": 'write .map(function, schema="team string, points long")',
    ".map_batches": 'write .map_batches(function, schema="team string, points long")',
    ".event_time": f"write {_TIME}",
    ".window": 'write .window(ps.tumbling("5 minutes"), lateness="1 hour")',
    ".trigger": 'write .trigger(ps.at_watermark(early=ps.every("1 minute"))); how often a batch begins is '
    'run(batch_every="1 second")',
    ".accumulating": "write .accumulating()",
    ".write": f"write .write({_SINK})",
    ".top": 'write .top(10, by="points", window=ps.tumbling("1 hour"))',
    ".join": f"write {_JOIN}",
    ".enrich": 'write .enrich(look_up, output="town string", on="ip")',
    ".process": f"write {_PROCESS}",
    ".match": 'write .match(ps.pattern("a", "points > 2").then("b", "points > 5").within("1 minute"))',
    ".run": 'write .run(checkpoint="checkpoints/totals")',
    ".start": 'write .start(checkpoint="checkpoints/totals")',
    ".within": 'write .within("10 minutes")',
    "ps.tumbling": 'write ps.tumbling("5 minutes"); .event_time("at", …) says the column of the time, windows that '
    'overlap are ps.sliding("1 hour", every="5 minutes")',
    "ps.sliding": 'write ps.sliding("1 hour", every="5 minutes")',
    "ps.session": 'write ps.session("30 minutes")',
    "ps.calendar": 'write ps.calendar("day", zone="Europe/Berlin")',
    "ps.bounded": 'write ps.bounded("5 seconds")',
    "ps.percentile": "write ps.percentile(0.99)",
    "ps.at_watermark": 'write ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1))',
    "ps.every": 'write ps.every("1 minute", offset="10 seconds")',
    "ps.rows": """write ps.rows(), or ps.rows(where="team = 'red'"), or ps.count("points") where points is not null""",
    "ps.count": 'write ps.count("points") for an aggregate, ps.count(100) for a trigger, ps.rows() for all rows',
    "ps.sum": 'write ps.sum("points")',
    "ps.max": 'write ps.max("points")',
    "ps.min": 'write ps.min("points")',
    "ps.arg_max": 'write ps.arg_max("team", "points")',
    "ps.arg_min": 'write ps.arg_min("team", "points")',
    "ps.fold": 'write ps.fold("points", MyFold(), type="long")',
    "ps.events": 'write ps.events("team string, points long, at timestamp", name="scores")',
    "ps.directory": 'write ps.directory("scores/", schema="team string, points long, at timestamp")',
    "ps.kafka": 'write ps.kafka("scores", servers="localhost:9092", schema="team string, at timestamp")',
    "ps.to_kafka": 'write ps.to_kafka("totals", servers="localhost:9092")',
    "ps.table": 'write ps.table("teams.csv", schema="team string, town string")',
    "ps.pipeline": f'write ps.pipeline("totals", totals.write({_SINK})); where the memory is kept is '
    'run(checkpoint="checkpoints/totals")',
    "ps.sqlite": f"write {_SINK}",
    "ps.duckdb": 'write ps.duckdb("answers.duckdb", table="totals")',
    "ps.postgres": 'write ps.postgres("postgresql://…", table="totals")',
    "ps.memory": 'write ps.memory("seen")',
}
