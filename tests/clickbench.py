"""ClickBench: the table of page views and its 43 queries, numbered from 0 as they are published.

    COLUMNS     name and SQL type of each of the 105 columns
    QUERIES     texts by number
    COMPARED    of queries that keep the first rows of many equal ones: which columns of the answer do not depend on the choice

Source: ClickHouse, "ClickBench - a Benchmark For Analytical DBMS".
"""

from __future__ import annotations

from typing import Final

_SMALL: Final = "SMALLINT"
_KINDS: Final[dict[str, str]] = {
    "BIGINT": "WatchID UserID FUniqID ParamPrice RefererHash URLHash",
    "INTEGER": "CounterID ClientIP RegionID RefererRegionID URLRegionID IPNetworkID SilverlightVersion3 CodeVersion HID "
    "RemoteIP WindowName OpenerName SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming CLID",
    "TEXT": "Title URL Referer FlashMinor2 UserAgentMinor MobilePhoneModel Params SearchPhrase PageCharset OriginalURL HitColor "
    "BrowserLanguage BrowserCountry SocialNetwork SocialAction SocialSourcePage ParamOrderID ParamCurrency OpenstatServiceName "
    "OpenstatCampaignID OpenstatAdID OpenstatSourceID UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag",
    "TIMESTAMP": "EventTime ClientEventTime LocalEventTime",
    "DATE": "EventDate",
}
_TYPES: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}

NAMES: Final = (
    "WatchID JavaEnable Title GoodEvent EventTime EventDate CounterID ClientIP RegionID UserID CounterClass OS UserAgent URL "
    "Referer IsRefresh RefererCategoryID RefererRegionID URLCategoryID URLRegionID ResolutionWidth ResolutionHeight "
    "ResolutionDepth FlashMajor FlashMinor FlashMinor2 NetMajor NetMinor UserAgentMajor UserAgentMinor CookieEnable "
    "JavascriptEnable IsMobile MobilePhone MobilePhoneModel Params IPNetworkID TraficSourceID SearchEngineID SearchPhrase "
    "AdvEngineID IsArtifical WindowClientWidth WindowClientHeight ClientTimeZone ClientEventTime SilverlightVersion1 "
    "SilverlightVersion2 SilverlightVersion3 SilverlightVersion4 PageCharset CodeVersion IsLink IsDownload IsNotBounce FUniqID "
    "OriginalURL HID IsOldCounter IsEvent IsParameter DontCountHits WithHash HitColor LocalEventTime Age Sex Income Interests "
    "Robotness RemoteIP WindowName OpenerName HistoryLength BrowserLanguage BrowserCountry SocialNetwork SocialAction HTTPError "
    "SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming SocialSourceNetworkID SocialSourcePage "
    "ParamPrice ParamOrderID ParamCurrency ParamCurrencyID OpenstatServiceName OpenstatCampaignID OpenstatAdID OpenstatSourceID "
    "UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag HasGCLID RefererHash URLHash CLID"
).split()

COLUMNS: Final = tuple((name, _TYPES.get(name, _SMALL)) for name in NAMES)

_MONTH: Final = "CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'"
_PART: Final = f"{_MONTH} AND IsRefresh = 0"
_HOST: Final = r"REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1')"
_SUMS: Final = "SUM(ResolutionWidth), " + ", ".join(f"SUM(ResolutionWidth + {each})" for each in range(1, 90))

_TEXTS: Final = (
    "SELECT COUNT(*) FROM hits",
    "SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0",
    "SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM hits",
    "SELECT AVG(UserID) FROM hits",
    "SELECT COUNT(DISTINCT UserID) FROM hits",
    "SELECT COUNT(DISTINCT SearchPhrase) FROM hits",
    "SELECT MIN(EventDate), MAX(EventDate) FROM hits",
    "SELECT AdvEngineID, COUNT(*) FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY COUNT(*) DESC",
    "SELECT RegionID, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC LIMIT 10",
    "SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT UserID) FROM hits "
    "GROUP BY RegionID ORDER BY c DESC LIMIT 10",
    "SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' "
    "GROUP BY MobilePhoneModel ORDER BY u DESC LIMIT 10",
    "SELECT MobilePhone, MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' "
    "GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC LIMIT 10",
    "SELECT SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10",
    "SELECT SearchPhrase, COUNT(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> '' "
    "GROUP BY SearchPhrase ORDER BY u DESC LIMIT 10",
    "SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> '' "
    "GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC LIMIT 10",
    "SELECT UserID, COUNT(*) FROM hits GROUP BY UserID ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10",
    "SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM hits "
    "GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT UserID FROM hits WHERE UserID = 435090932899640449",
    "SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'",
    "SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> '' "
    "GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10",
    "SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, COUNT(DISTINCT UserID) FROM hits "
    "WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' "
    "GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10",
    "SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10",
    "SELECT CounterID, AVG(LENGTH(URL)) AS l, COUNT(*) AS c FROM hits WHERE URL <> '' "
    "GROUP BY CounterID HAVING COUNT(*) > 1000 ORDER BY l DESC LIMIT 25",
    f"SELECT {_HOST} AS k, AVG(LENGTH(Referer)) AS l, COUNT(*) AS c, MIN(Referer) FROM hits WHERE Referer <> '' "
    "GROUP BY k HAVING COUNT(*) > 1000 ORDER BY l DESC LIMIT 25",
    f"SELECT {_SUMS} FROM hits",
    "SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits "
    "WHERE SearchPhrase <> '' GROUP BY SearchEngineID, ClientIP ORDER BY c DESC LIMIT 10",
    "SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits "
    "WHERE SearchPhrase <> '' GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10",
    "SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits "
    "GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10",
    "SELECT URL, COUNT(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10",
    "SELECT 1, URL, COUNT(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC LIMIT 10",
    "SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c FROM hits "
    "GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC LIMIT 10",
    f"SELECT URL, COUNT(*) AS PageViews FROM hits WHERE {_MONTH} AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> '' "
    "GROUP BY URL ORDER BY PageViews DESC LIMIT 10",
    f"SELECT Title, COUNT(*) AS PageViews FROM hits WHERE {_MONTH} AND DontCountHits = 0 AND IsRefresh = 0 AND Title <> '' "
    "GROUP BY Title ORDER BY PageViews DESC LIMIT 10",
    f"SELECT URL, COUNT(*) AS PageViews FROM hits WHERE {_PART} AND IsLink <> 0 AND IsDownload = 0 "
    "GROUP BY URL ORDER BY PageViews DESC LIMIT 10 OFFSET 1000",
    "SELECT TraficSourceID, SearchEngineID, AdvEngineID, CASE WHEN (SearchEngineID = 0 AND AdvEngineID = 0) THEN Referer "
    f"ELSE '' END AS Src, URL AS Dst, COUNT(*) AS PageViews FROM hits WHERE {_PART} "
    "GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst ORDER BY PageViews DESC LIMIT 10 OFFSET 1000",
    f"SELECT URLHash, EventDate, COUNT(*) AS PageViews FROM hits WHERE {_PART} AND TraficSourceID IN (-1, 6) "
    "AND RefererHash = 3594120000172545465 GROUP BY URLHash, EventDate ORDER BY PageViews DESC LIMIT 10 OFFSET 100",
    "SELECT WindowClientWidth, WindowClientHeight, COUNT(*) AS PageViews FROM hits "
    f"WHERE {_PART} AND DontCountHits = 0 AND URLHash = 2868770270353813622 "
    "GROUP BY WindowClientWidth, WindowClientHeight ORDER BY PageViews DESC LIMIT 10 OFFSET 10000",
    "SELECT DATE_TRUNC('minute', EventTime) AS M, COUNT(*) AS PageViews FROM hits WHERE CounterID = 62 "
    "AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0 "
    "GROUP BY DATE_TRUNC('minute', EventTime) ORDER BY DATE_TRUNC('minute', EventTime) LIMIT 10 OFFSET 1000",
)

QUERIES: Final[dict[int, str]] = dict(enumerate(_TEXTS))

COMPARED: Final[dict[int, tuple[int, ...]]] = {
    8: (1,), 9: (2,), 10: (1,), 11: (2,), 12: (1,), 13: (1,), 14: (2,), 15: (1,), 16: (2,), 17: (), 18: (3,), 21: (2,),
    22: (3,), 23: (4,), 24: (), 27: (1,), 28: (1,), 30: (2,), 31: (2,), 32: (2,), 33: (1,), 34: (2,), 35: (4,), 36: (1,),
    37: (1,), 38: (1,), 39: (5,), 40: (2,), 41: (2,),
}  # fmt: skip
