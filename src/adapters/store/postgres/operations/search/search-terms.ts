/** What the words of a filter stand for: recipes with a class, with weights or with a text, labels with a value, titles with a word. */
import { toTerm } from '../../../../../domain/jobs/summaries/job-recipe.ts'
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { masksWith } from '../../../rows/jobs/output-types.ts'
import { type FoundTerms, MAX_RANGES } from '../../../search/search-plan.ts'
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

// An account that gives every job a title of its own is searched by the first of them, and by those that begin with the text.
const MAX_TITLES = 500

// From one title of ended jobs to the next; live jobs are asked directly.
const nextTitle = (condition: string) =>
  `SELECT title FROM job_done WHERE title IS NOT NULL AND account_id = $1 AND title ${condition} ORDER BY title LIMIT 1`
const TITLES = statement<[title: string]>(
  'search.titles',
  `WITH RECURSIVE
     each_one(title, place) AS (
       (SELECT first.title, 1 FROM (${nextTitle(">= ''")}) AS first)
       UNION ALL
       SELECT next.title, place + 1 FROM each_one CROSS JOIN LATERAL (${nextTitle('> each_one.title')}) AS next
       WHERE place < ${MAX_TITLES}),
     beginning(title, place) AS (
       (SELECT first.title, 1 FROM (${nextTitle('>= $2')}) AS first)
       UNION ALL
       SELECT next.title, place + 1 FROM beginning CROSS JOIN LATERAL (${nextTitle('> beginning.title')}) AS next
       WHERE starts_with(beginning.title, $2) AND place < ${MAX_VALUES})
   SELECT title FROM each_one WHERE strpos(lower(title), lower($2)) > 0
   UNION SELECT title FROM beginning WHERE starts_with(title, $2) LIMIT ${MAX_RANGES}`,
)

const nextMask = (condition: string) =>
  `SELECT output_types FROM job_done WHERE output_types > 0 AND account_id = $1 AND output_types > ${condition}
   ORDER BY output_types LIMIT 1`
const MASKS = statement<[mask: number]>(
  'search.output_types',
  `WITH RECURSIVE kind(mask) AS (
     (SELECT first.output_types FROM (${nextMask('0')}) AS first)
     UNION ALL
     SELECT next.output_types FROM kind CROSS JOIN LATERAL (${nextMask('kind.mask')}) AS next)
   SELECT mask FROM kind`,
)

type SearchedTerms = Pick<SummaryFilter, 'classType' | 'weights' | 'text' | 'outputs'>

export async function findTerms(
  read: Queryable,
  accountId: string,
  { classType, weights, text, outputs }: SearchedTerms,
): Promise<FoundTerms> {
  const terms = [
    classType === null ? null : toTerm('class', classType),
    weights === null ? null : toTerm('weights', weights),
  ]
  const isAsked = classType !== null || weights !== null
  const [recipes, withText, labels, titles, masks] = await Promise.all([
    isAsked ? read.all(WITH_TERMS, [accountId, ...terms]) : null,
    text === null ? [] : read.all(WITH_TEXT, [accountId, text]),
    text === null ? [] : read.all(LABELS, [accountId, text]),
    text === null ? [] : read.all(TITLES, [accountId, text]),
    outputs === null ? [] : read.all(MASKS, [accountId]),
  ])
  return {
    recipes: recipes?.map(([recipe]) => recipe) ?? null,
    text:
      text === null
        ? null
        : { recipes: withText.map(([recipe]) => recipe), labels, titles: titles.map(([title]) => title) },
    masks:
      outputs === null
        ? null
        : masksWith(
            outputs.type,
            masks.map(([mask]) => mask),
          ),
  }
}
