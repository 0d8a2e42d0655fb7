/** What the words of a filter stand for: recipes with a class, with weights or with a text, and labels with a value. */
import { toTerm } from '../../../../../domain/jobs/summaries/job-recipe.ts'
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { type FoundTerms, MAX_RANGES } from '../../../search/search-plan.ts'
import type { OwnedRecipe, ServiceTerms } from '../../../search/service-plan.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const WITH_TERMS = statement<[recipe: string]>(
  'search.recipes',
  `SELECT recipe FROM job_recipe WHERE account_id = $1 AND ($2::text IS NULL OR strpos(terms, $2) > 0)
     AND ($3::text IS NULL OR strpos(terms, $3) > 0)`,
)
const WITH_TEXT = statement<[recipe: string]>(
  'search.recipes_with_text',
  `SELECT recipe FROM job_recipe WHERE account_id = $1
     AND (strpos(lower(title), lower($2)) > 0 OR strpos(lower(terms), lower($2)) > 0) LIMIT ${MAX_RANGES}`,
)

// An account that labels every job with a key of its own is searched by the first of them only.
const MAX_KEYS = 100
const MAX_VALUES = 20

// From one key to the next, and in each from one value with the beginning to the next.
const LABELS = statement<[key: string, value: string]>(
  'search.labels',
  `WITH RECURSIVE
     name(key, place) AS (
       (SELECT key, 1 FROM job_label WHERE account_id = $1 ORDER BY key LIMIT 1)
       UNION ALL
       SELECT next.key, place + 1 FROM name CROSS JOIN LATERAL (
         SELECT key FROM job_label WHERE account_id = $1 AND key > name.key ORDER BY key LIMIT 1) AS next
       WHERE place < ${MAX_KEYS}),
     found(key, value, place) AS (
       SELECT name.key, first.value, 1 FROM name CROSS JOIN LATERAL (
         SELECT value FROM job_label WHERE account_id = $1 AND key = name.key AND value >= $2 ORDER BY value LIMIT 1) AS first
       UNION ALL
       SELECT found.key, next.value, place + 1 FROM found CROSS JOIN LATERAL (
         SELECT value FROM job_label WHERE account_id = $1 AND key = found.key AND value > found.value
         ORDER BY value LIMIT 1) AS next
       WHERE starts_with(found.value, $2) AND place < ${MAX_VALUES})
   SELECT key, value FROM found WHERE starts_with(value, $2) LIMIT ${MAX_RANGES}`,
)

type SearchedTerms = Pick<SummaryFilter, 'classType' | 'weights' | 'text'>

export async function findTerms(
  read: Queryable,
  accountId: string,
  { classType, weights, text }: SearchedTerms,
): Promise<FoundTerms> {
  const terms = [toTermOf('class', classType), toTermOf('weights', weights)]
  const isAsked = classType !== null || weights !== null
  const [recipes, withText, labels] = await Promise.all([
    isAsked ? read.all(WITH_TERMS, [accountId, ...terms]) : null,
    text === null ? [] : read.all(WITH_TEXT, [accountId, text]),
    text === null ? [] : read.all(LABELS, [accountId, text]),
  ])
  return {
    recipes: recipes?.map(([recipe]) => recipe) ?? null,
    text: text === null ? null : { recipes: withText.map(([recipe]) => recipe), labels },
  }
}

function toTermOf(kind: 'class' | 'weights', name: string | null): string | null {
  return name === null ? null : toTerm(kind, name)
}

const ALL_WITH_TERMS = statement<OwnedRecipe>(
  'search.all_recipes',
  `SELECT account_id, recipe FROM job_recipe
   WHERE ($1::text IS NULL OR strpos(terms, $1) > 0) AND ($2::text IS NULL OR strpos(terms, $2) > 0)`,
)
const ALL_WITH_TEXT = statement<OwnedRecipe>(
  'search.all_recipes_with_text',
  `SELECT account_id, recipe FROM job_recipe
   WHERE strpos(lower(title), lower($1)) > 0 OR strpos(lower(terms), lower($1)) > 0 LIMIT ${MAX_RANGES}`,
)
const LABELLED = statement<[accountId: string]>(
  'search.labelled_accounts',
  `SELECT id FROM account WHERE EXISTS (
     SELECT 1 FROM job_label WHERE account_id = account.id AND key = $1 AND value = $2) LIMIT ${MAX_RANGES + 1}`,
)

/** Of all accounts. One account more than can be walked says that there are too many. */
export async function findServiceTerms(
  read: Queryable,
  { classType, weights, text, metadata }: SearchedTerms & Pick<SummaryFilter, 'metadata'>,
): Promise<Omit<ServiceTerms, 'isEngineIndexed'>> {
  const [label] = Object.entries(metadata)
  const isAsked = classType !== null || weights !== null
  const [recipes, withText, labelled] = await Promise.all([
    isAsked ? read.all(ALL_WITH_TERMS, [toTermOf('class', classType), toTermOf('weights', weights)]) : null,
    text === null ? null : read.all(ALL_WITH_TEXT, [text]),
    label === undefined ? [] : read.all(LABELLED, label),
  ])
  // Jobs that wait are found among the live ones.
  return { recipes, text: withText, labelled: labelled.map(([id]) => id), waiting: [] }
}
