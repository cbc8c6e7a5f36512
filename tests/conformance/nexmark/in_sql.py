"""What each query asks, as one SQL query over all events at once; times are microseconds."""

from __future__ import annotations

SECOND = 1_000_000
IN_TIME = "auction a join bid b on a.id = b.auction and b.date_time between a.date_time and a.expires"
WINNERS = f"""
    select a.id, a.seller, a.category, b.price, b.date_time from {IN_TIME}
    qualify row_number() over (partition by a.id order by b.price desc, b.date_time) = 1
"""
HOPS = f"""
    select auction, count(*) as num, (date_time // {2 * SECOND} + 1 + hop) * {2 * SECOND} as hop_end
    from bid, range(5) hops(hop) group by all
"""
SESSIONS = f"""
    select bidder, date_time, sum(fresh) over (partition by bidder order by date_time) as session from (
        select *, (coalesce(date_time - lag(date_time) over (partition by bidder order by date_time), 1e18)
                   > {10 * SECOND})::int as fresh from bid)
"""


def _ranked(rank: str, where: str) -> str:
    """Bids, bidders and auctions of a range of prices."""
    return f"""count(*) filter ({where}) as {rank}_bids, count(distinct bidder) filter ({where}) as {rank}_bidders,
               count(distinct auction) filter ({where}) as {rank}_auctions"""


RANKS = {"total": "where true", "rank1": "where price < 10000", "rank2": "where price >= 10000 and price < 1000000",
         "rank3": "where price >= 1000000"}  # fmt: skip
RANKED = ", ".join(_ranked(rank, where) for rank, where in RANKS.items())
BIDS = ", ".join(f"count(*) filter ({where}) as {rank}_bids" for rank, where in RANKS.items())
DAY = f"date_time // {86_400 * SECOND} * {86_400 * SECOND} as window_start"
HOUR = f"date_time // {3_600 * SECOND} % 24"

SQL = {
    "q0": "select auction, bidder, price, date_time, extra from bid",
    "q1": "select auction, bidder, round(price * 0.908, 3)::double as price, date_time, extra from bid",
    "q2": "select auction, price from bid where auction % 123 = 0",
    "q3": """select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
             where a.category = 10 and p.state in ('OR', 'ID', 'CA')""",
    "q4": f"select category, avg(price) as final from ({WINNERS}) group by category",
    "q5": f"select * from ({HOPS}) qualify num = max(num) over (partition by hop_end)",
    "q6": f"""select seller, avg(price) as avg_price from (select * from ({WINNERS})
              qualify row_number() over (partition by seller order by date_time desc) <= 11) group by seller""",
    "q7": f"""select b.auction, b.bidder, b.price, b.date_time, b.extra from bid b join (
              select max(price) as top, (date_time // {10 * SECOND} + 1) * {10 * SECOND} as till from bid group by till
              ) w on b.price = w.top and b.date_time between w.till - {10 * SECOND} and w.till""",
    "q8": f"""select distinct p.id, p.name, p.date_time // {10 * SECOND} * {10 * SECOND} as stime from person p
              join auction a on p.id = a.seller and p.date_time // {10 * SECOND} = a.date_time // {10 * SECOND}""",
    "q9": f"""select a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.seller,
              a.category, a.extra, b.bidder, b.price, b.date_time as bid_date_time, b.extra as bid_extra
              from {IN_TIME} qualify row_number() over (partition by a.id order by b.price desc, b.date_time) = 1""",
    "q11": f"""select bidder, min(date_time) as window_start, max(date_time) + {10 * SECOND} as window_end,
               count(*) as bid_count from ({SESSIONS}) group by bidder, session""",
    "q14": f"""select auction, bidder, round(price * 0.908, 3)::double as price, case
               when {HOUR} between 8 and 18 then 'dayTime' when {HOUR} <= 6 or {HOUR} >= 20 then 'nightTime'
               else 'otherTime' end as bid_time_type, date_time, extra,
               length(extra) - length(replace(extra, 'c', '')) as c_counts
               from bid where price * 0.908 > 1000000 and price * 0.908 < 50000000""",
    "q15": f"select {DAY}, {RANKED} from bid group by window_start",
    "q16": f"select channel, {DAY}, max(date_time) as newest, {RANKED} from bid group by channel, window_start",
    "q17": f"""select auction, {DAY}, {BIDS}, min(price) as min_price, max(price) as max_price,
               avg(price) as avg_price, sum(price)::long as sum_price from bid group by auction, window_start""",
    "q18": "select * from bid qualify row_number() over (partition by bidder, auction order by date_time desc) = 1",
    "q19": """select *, row_number() over (partition by auction order by price desc) as rank from bid
              qualify rank <= 10""",
    "q20": """select b.auction, b.bidder, b.price, b.channel, b.url, b.date_time as bid_date_time,
              b.extra as bid_extra, a.item_name, a.description, a.initial_bid, a.reserve,
              a.date_time as auction_date_time, a.expires, a.seller, a.category, a.extra as auction_extra
              from bid b join auction a on b.auction = a.id where a.category = 10""",
    "q21": """select auction, bidder, price, channel, case lower(channel) when 'apple' then '0' when 'google' then '1'
              when 'facebook' then '2' when 'baidu' then '3'
              else nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') end as channel_id
              from bid where channel_id is not null""",
    "q22": """select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2,
              split_part(url, '/', 6) as dir3 from bid""",
    "q23": """select b.bidder, b.price, b.channel, b.url, b.extra as bid_extra, p.id as person_id, p.name,
              p.email_address, p.credit_card, p.city, p.state, p.extra as person_extra, a.item_name, a.description,
              a.initial_bid, a.reserve, a.date_time as auction_date_time, a.expires, a.seller, a.category,
              a.extra as auction_extra
              from bid b join person p on p.id = b.bidder join auction a on a.seller = b.bidder""",
}
