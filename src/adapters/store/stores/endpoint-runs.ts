/** What became of the calls of one endpoint in a period, by the index of labels, and what they cost, by an index of the ledger. */
import type { EndpointRuns, EndpointRunsQuery } from '../../../domain/endpoints/endpoint-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { all, type Steps, together } from '../statements/operation.ts'
import { query, type Words } from '../statements/statement.ts'
import { integer, nullable, shape, text } from '../tables/table.ts'
import { dayEdges } from './ledger/charges.ts'

const AT = 'account_id = :accountId'
const isAsked = (table: string) => `(CAST(:pool AS text) IS NULL OR ${table}.pool = :pool)`
const LABELLED = `label.${AT} AND label.key = '@endpoint' AND label.value = :name
  AND label.created_at >= begins AND label.created_at < ends`

const RUNS = query(
  'endpoints.runs',
  shape({
    ...{ place: integer(), version: nullable(integer()), status: text<JobStatus>(), runs: integer(), runMs: integer() },
  }),
  (words) => `
    WITH edge AS (${dayEdges(words)}), run AS (${toRuns(words)})
    SELECT place, version, status, count(*) AS runs, coalesce(sum(completed_at - started_at), 0) AS run_ms
    FROM run GROUP BY place, version, status`,
)

function toRuns({ either }: Words): string {
  const version = either(
    `CAST(json_extract(metadata, '$."@version"') AS INTEGER)`,
    `CAST(metadata::json ->> '@version' AS integer)`,
  )
  const facts = `place, ${version} AS version, status, started_at`
  const labels = `edge ${either('CROSS JOIN', 'JOIN')} job_label AS label ON ${LABELLED}`
  return either(
    `SELECT ${facts}, completed_at FROM ${labels} JOIN job ON job.id = label.job_id AND ${isAsked('job')}`,
    `SELECT ${facts}, NULL::bigint AS completed_at FROM ${labels} JOIN job ON job.id = label.job_id AND ${isAsked('job')}
     UNION ALL
     SELECT ${facts}, completed_at FROM ${labels}
     JOIN job_done ON job_done.id = label.job_id AND job_done.expires_at = label.expires_at AND ${isAsked('job_done')}`,
  )
}

const CHARGES = query(
  'endpoints.charges',
  shape({ place: integer(), version: nullable(integer()), charged: integer() }),
  (words) => `
    WITH edge AS (${dayEdges(words)})
    SELECT place, endpoint_version AS version, sum(charged) AS charged
    FROM edge ${words.either('CROSS JOIN ledger_entry AS entry INDEXED BY ledger_entry_endpoint', 'JOIN ledger_entry AS entry')}
      ON entry.${AT} AND endpoint = :name AND at >= begins AND at < ends AND kind IN ('settle', 'refund')
      AND ${isAsked('entry')}
    GROUP BY place, endpoint_version`,
)

export function* findEndpointRuns({ accountId, name, pool, edges }: EndpointRunsQuery): Steps<EndpointRuns> {
  const asked = { accountId, name, pool, edges: edges.map((edge) => edge.getTime()) }
  const [runs, charges] = yield* together(all(RUNS, asked), all(CHARGES, asked))
  return { runs, charges }
}
