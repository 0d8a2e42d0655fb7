/** What became of the calls of one endpoint in a period, by the index of labels, and what they cost, by an index of the ledger. */
import type { EndpointRuns, EndpointRunsQuery } from '../../../domain/endpoints/endpoint-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { all, type Steps, together } from '../statements/operation.ts'
import { query, type Words } from '../statements/statement.ts'
import { integer, nullable, shape, text } from '../tables/table.ts'
import { dayEdges } from './ledger/charges.ts'

type Whose = 'own' | 'others'

const AT = 'account_id = :accountId'
const isAsked = (table: string) => `(CAST(:pool AS text) IS NULL OR ${table}.pool = :pool)`
/** The name of another account's endpoint has its owner before it: as the indexes of those runs and charges say it. */
const isOfOther = ({ either }: Words, column: string) =>
  either(`instr(${column}, '/') > 0`, `strpos(${column}, '/') > 0`)
const IN_DAY = 'label.created_at >= begins AND label.created_at < ends'
const toLabels = (words: Words, whose: Whose) =>
  whose === 'own'
    ? `edge ${words.either('CROSS JOIN', 'JOIN')} job_label AS label
       ON label.${AT} AND label.key = '@endpoint' AND label.value = :name AND ${IN_DAY}`
    : `edge ${words.either('CROSS JOIN job_label AS label INDEXED BY job_label_of_others', 'JOIN job_label AS label')}
       ON label.key = '@endpoint' AND ${isOfOther(words, 'label.value')} AND label.value = :name AND ${IN_DAY}`

const runsBy = (whose: Whose) =>
  query(
    `endpoints.runs.${whose}`,
    shape({
      ...{
        place: integer(),
        version: nullable(integer()),
        status: text<JobStatus>(),
        runs: integer(),
        runMs: integer(),
      },
    }),
    (words) => `
    WITH edge AS (${dayEdges(words)}), run AS (${toRuns(words, toLabels(words, whose))})
    SELECT place, version, status, count(*) AS runs, coalesce(sum(completed_at - started_at), 0) AS run_ms
    FROM run GROUP BY place, version, status`,
  )

function toRuns({ either }: Words, labels: string): string {
  const version = either(
    `CAST(json_extract(metadata, '$."@version"') AS INTEGER)`,
    `CAST(metadata::json ->> '@version' AS integer)`,
  )
  const facts = `place, ${version} AS version, status, started_at`
  return either(
    `SELECT ${facts}, completed_at FROM ${labels} JOIN job ON job.id = label.job_id AND ${isAsked('job')}`,
    `SELECT ${facts}, NULL::bigint AS completed_at FROM ${labels} JOIN job ON job.id = label.job_id AND ${isAsked('job')}
     UNION ALL
     SELECT ${facts}, completed_at FROM ${labels}
     JOIN job_done ON job_done.id = label.job_id AND job_done.expires_at = label.expires_at AND ${isAsked('job_done')}`,
  )
}

const chargesBy = (whose: Whose) =>
  query(
    `endpoints.charges.${whose}`,
    shape({ place: integer(), version: nullable(integer()), charged: integer() }),
    (words) => {
      const index = whose === 'own' ? 'ledger_entry_endpoint' : 'ledger_entry_of_others'
      const of = whose === 'own' ? `entry.${AT}` : isOfOther(words, 'entry.endpoint')
      return `
    WITH edge AS (${dayEdges(words)})
    SELECT place, endpoint_version AS version, sum(charged) AS charged
    FROM edge ${words.either(`CROSS JOIN ledger_entry AS entry INDEXED BY ${index}`, 'JOIN ledger_entry AS entry')}
      ON ${of} AND endpoint = :name AND at >= begins AND at < ends AND kind IN ('settle', 'refund')
      AND ${isAsked('entry')}
    GROUP BY place, endpoint_version`
    },
  )

const STATEMENTS = {
  own: { runs: runsBy('own'), charges: chargesBy('own') },
  others: { runs: runsBy('others'), charges: chargesBy('others') },
}

export function* findEndpointRuns({ accountId, name, whose, pool, edges }: EndpointRunsQuery): Steps<EndpointRuns> {
  const called = whose === 'own' ? name : `${accountId}/${name}`
  const asked = { accountId, name: called, pool, edges: edges.map((edge) => edge.getTime()) }
  const statements = STATEMENTS[whose]
  const [runs, charges] = yield* together(all(statements.runs, asked), all(statements.charges, asked))
  return { runs, charges }
}
