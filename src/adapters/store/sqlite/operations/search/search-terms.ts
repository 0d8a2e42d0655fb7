/** What the words of a filter stand for: recipes with a class, with weights or with a text, labels with a value, titles with a word. */
import type { DatabaseSync } from 'node:sqlite'
import { toTerm } from '../../../../../domain/jobs/summaries/job-recipe.ts'
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { masksWith } from '../../../rows/jobs/output-types.ts'
import { type FoundTerms, MAX_RANGES } from '../../../search/search-plan.ts'
import { prepareRows } from '../statement.ts'

type SearchedTerms = Pick<SummaryFilter, 'classType' | 'weights' | 'text' | 'outputs'>

// An account that labels every job with a key of its own is searched by the first of them only.
const MAX_KEYS = 100
const MAX_VALUES = 20
// One that gives every job a title of its own is searched by the first of them, and by those that begin with the text.
const MAX_TITLES = 500

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
  // From one title to the next: every one of them, and those that begin with the text.
  const titles = prepareRows<[string]>(
    database,
    `WITH RECURSIVE
       each_one(title, place) AS (
         SELECT ${nextTitle("title >= ''")}, 1
         UNION ALL
         SELECT ${nextTitle('title > each_one.title')}, place + 1 FROM each_one
         WHERE each_one.title IS NOT NULL AND place < ${MAX_TITLES}),
       beginning(title, place) AS (
         SELECT ${nextTitle('title >= ?2')}, 1
         UNION ALL
         SELECT ${nextTitle('title > beginning.title')}, place + 1 FROM beginning
         WHERE substr(beginning.title, 1, length(?2)) = ?2 AND place < ${MAX_VALUES})
     SELECT title FROM each_one WHERE instr(lower(title), lower(?2)) > 0
     UNION SELECT title FROM beginning WHERE substr(title, 1, length(?2)) = ?2 LIMIT ${MAX_RANGES}`,
  )
  const masks = prepareRows<[number | null]>(
    database,
    `WITH RECURSIVE kind(mask) AS (
       SELECT ${nextMask('output_types > 0')}
       UNION ALL SELECT ${nextMask('output_types > kind.mask')} FROM kind WHERE kind.mask IS NOT NULL)
     SELECT mask FROM kind WHERE mask IS NOT NULL`,
  )
  return (accountId, { classType, weights, text, outputs }) => {
    const isAsked = classType !== null || weights !== null
    const terms = [
      classType === null ? null : toTerm('class', classType),
      weights === null ? null : toTerm('weights', weights),
    ]
    return {
      recipes: isAsked ? withTerms.all(accountId, ...terms).map(([recipe]) => recipe) : null,
      text:
        text === null
          ? null
          : {
              recipes: withText.all(accountId, text).map(([recipe]) => recipe),
              labels: labels.all(accountId, text),
              titles: titles.all(accountId, text).map(([title]) => title),
            },
      masks: outputs === null ? null : masksWith(outputs.type, listMasks(accountId)),
    }
  }

  function listMasks(accountId: string): number[] {
    return masks.all(accountId).map(([mask]) => mask ?? 0)
  }
}

function nextTitle(condition: string): string {
  return `(SELECT min(title) FROM job INDEXED BY job_title_listing
    WHERE title IS NOT NULL AND completed_at IS NOT NULL AND account_id = ?1 AND ${condition})`
}

/** `<>` and not `>`: the database begins at one lower bound only, and must begin at the condition's. */
function nextMask(condition: string): string {
  return `(SELECT min(output_types) FROM job INDEXED BY job_output_listing
    WHERE output_types <> 0 AND account_id = ?1 AND ${condition})`
}
