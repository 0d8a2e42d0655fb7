/** What the words of a filter stand for over all accounts. One account more than can be walked says that there are too many. */
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { MAX_RANGES } from '../../../search/search-plan.ts'
import { MAX_TITLES, type OwnedName, type ServiceTerms, toTerms } from '../../../search/service-plan.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const WITH_TERMS = statement<OwnedName>(
  'search.all_recipes',
  `SELECT account_id, recipe FROM job_recipe
   WHERE ($1::text IS NULL OR strpos(terms, $1) > 0) AND ($2::text IS NULL OR strpos(terms, $2) > 0)`,
)
const WITH_TEXT = statement<OwnedName>(
  'search.all_recipes_with_text',
  `SELECT account_id, recipe FROM job_recipe
   WHERE strpos(lower(title), lower($1)) > 0 OR strpos(lower(terms), lower($1)) > 0 LIMIT ${MAX_RANGES}`,
)
// From one title of ended jobs to the next; live jobs are asked directly.
const nextTitle = (behind: string) => `SELECT account_id, title FROM job_done
  WHERE title IS NOT NULL AND (account_id, title) > (${behind}) ORDER BY account_id, title LIMIT 1`
const TITLES = statement<OwnedName>(
  'search.all_titles',
  `WITH RECURSIVE each_one(account_id, title, place) AS (
     (SELECT first.account_id, first.title, 1 FROM (${nextTitle("'', ''")}) AS first)
     UNION ALL
     SELECT next.account_id, next.title, place + 1
     FROM each_one CROSS JOIN LATERAL (${nextTitle('each_one.account_id, each_one.title')}) AS next
     WHERE place < ${MAX_TITLES})
   SELECT account_id, title FROM each_one WHERE strpos(lower(title), lower($1)) > 0`,
)
// One look per account: there are far more labels than accounts.
const LABELLED = statement<[accountId: string]>(
  'search.labelled_accounts',
  `SELECT account.id FROM account CROSS JOIN LATERAL (
     SELECT 1 FROM job_label WHERE account_id = account.id AND key = $1 AND value = $2 LIMIT 1) AS carried
   LIMIT ${MAX_RANGES + 1}`,
)

export async function findServiceTerms(read: Queryable, filter: SummaryFilter): Promise<ServiceTerms> {
  const { text } = filter
  const [label] = Object.entries(filter.metadata)
  const terms = toTerms(filter)
  const [recipes, withText, titles, labelled] = await Promise.all([
    terms === null ? null : read.all(WITH_TERMS, terms),
    text === null ? [] : read.all(WITH_TEXT, [text]),
    text === null ? [] : read.all(TITLES, [text]),
    label === undefined ? [] : read.all(LABELLED, label),
  ])
  // Jobs that wait are found among the live ones.
  return {
    recipes,
    text: text === null ? null : { recipes: withText, titles },
    labelled: labelled.map(([id]) => id),
    engineUsers: null,
    waiting: [],
  }
}
