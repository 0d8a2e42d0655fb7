/** What the words of a filter stand for: recipes with a class, with weights or with a text, and labels with a value. */
import type { DatabaseSync } from 'node:sqlite'
import { toTerm } from '../../../../../domain/jobs/summaries/job-recipe.ts'
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { type FoundTerms, MAX_RANGES } from '../../../search/search-plan.ts'
import type { OwnedRecipe, ServiceTerms } from '../../../search/service-plan.ts'
import { prepareRows } from '../statement.ts'

type SearchedTerms = Pick<SummaryFilter, 'classType' | 'weights' | 'text'>

// An account that labels every job with a key of its own is searched by the first of them only.
const MAX_KEYS = 100
const MAX_VALUES = 20

export function prepareFindTerms(database: DatabaseSync): (accountId: string, searched: SearchedTerms) => FoundTerms {
  const withTerms = prepareRows<[string]>(
    database,
    `SELECT recipe FROM job_recipe WHERE account_id = ?1 AND (?2 IS NULL OR instr(terms, ?2) > 0)
       AND (?3 IS NULL OR instr(terms, ?3) > 0)`,
  )
  const withText = prepareRows<[string]>(
    database,
    `SELECT recipe FROM job_recipe WHERE account_id = ?1
       AND (instr(lower(title), lower(?2)) > 0 OR instr(lower(terms), lower(?2)) > 0) LIMIT ${MAX_RANGES}`,
  )
  // From one key to the next, and in each from one value with the beginning to the next.
  const labels = prepareRows<[key: string, value: string]>(
    database,
    `WITH RECURSIVE
       name(key, place) AS (
         SELECT min(key), 1 FROM job_label WHERE account_id = ?1
         UNION ALL
         SELECT (SELECT min(key) FROM job_label WHERE account_id = ?1 AND key > name.key), place + 1 FROM name
         WHERE name.key IS NOT NULL AND place < ${MAX_KEYS}),
       found(key, value, place) AS (
         SELECT key, (SELECT min(value) FROM job_label WHERE account_id = ?1 AND key = name.key AND value >= ?2), 1
         FROM name WHERE key IS NOT NULL
         UNION ALL
         SELECT key, (SELECT min(value) FROM job_label WHERE account_id = ?1 AND key = found.key AND value > found.value),
           place + 1 FROM found
         WHERE substr(found.value, 1, length(?2)) = ?2 AND place < ${MAX_VALUES})
     SELECT key, value FROM found WHERE substr(value, 1, length(?2)) = ?2 LIMIT ${MAX_RANGES}`,
  )
  return (accountId, { classType, weights, text }) => {
    const terms = [toTermOf('class', classType), toTermOf('weights', weights)]
    return {
      recipes:
        classType !== null || weights !== null ? withTerms.all(accountId, ...terms).map(([recipe]) => recipe) : null,
      text:
        text === null
          ? null
          : { recipes: withText.all(accountId, text).map(([recipe]) => recipe), labels: labels.all(accountId, text) },
    }
  }
}

function toTermOf(kind: 'class' | 'weights', name: string | null): string | null {
  return name === null ? null : toTerm(kind, name)
}

type ServiceFilter = SearchedTerms & Pick<SummaryFilter, 'metadata' | 'statuses'>

/** Of all accounts. One account more than can be walked says that there are too many. */
export function prepareFindServiceTerms(
  database: DatabaseSync,
): (filter: ServiceFilter) => Omit<ServiceTerms, 'isEngineIndexed'> {
  const withTerms = prepareRows<OwnedRecipe>(
    database,
    `SELECT account_id, recipe FROM job_recipe WHERE (?1 IS NULL OR instr(terms, ?1) > 0) AND (?2 IS NULL OR instr(terms, ?2) > 0)`,
  )
  const withText = prepareRows<OwnedRecipe>(
    database,
    `SELECT account_id, recipe FROM job_recipe
     WHERE instr(lower(title), lower(?1)) > 0 OR instr(lower(terms), lower(?1)) > 0 LIMIT ${MAX_RANGES}`,
  )
  const labelled = prepareRows<[string]>(
    database,
    `SELECT id FROM account WHERE EXISTS (
       SELECT 1 FROM job_label WHERE account_id = account.id AND key = ?1 AND value = ?2) LIMIT ${MAX_RANGES + 1}`,
  )
  const waiting = prepareRows<[string]>(
    database,
    `SELECT id FROM account INDEXED BY account_waiting WHERE queued > 0 LIMIT ${MAX_RANGES + 1}`,
  )
  return ({ classType, weights, text, metadata, statuses }) => {
    const [label] = Object.entries(metadata)
    const terms = [toTermOf('class', classType), toTermOf('weights', weights)]
    return {
      recipes: classType !== null || weights !== null ? withTerms.all(...terms) : null,
      text: text === null ? null : withText.all(text),
      labelled: label === undefined ? [] : labelled.all(...label).map(([id]) => id),
      waiting: statuses?.includes('queued') === true ? waiting.all().map(([id]) => id) : [],
    }
  }
}
