/** What an account's jobs have that begins with what somebody types: keys and values of labels, node classes and weights. */
import { readTerms } from '../../../domain/jobs/submit/job-origin.ts'
import type { SuggestionWish } from '../../../domain/jobs/summaries/summary-store.ts'
import { all, type Steps } from '../statements/operation.ts'
import { query, type Words } from '../statements/statement.ts'
import { nullable, shape, text } from '../tables/table.ts'

const MOST = 50
const words = shape({ word: nullable(text()) })

/** From one to the next, each once, however many jobs have it. */
function eachOnce(name: string, column: 'key' | 'value', of: string) {
  const next = (condition: string) =>
    `(SELECT min(${column}) FROM job_label WHERE account_id = :accountId ${of} AND ${column} ${condition})`
  const beginsSo = 'substr(word, 1, length(:text)) = :text'
  return query(
    name,
    words,
    `WITH RECURSIVE each_one(word, place) AS (
       SELECT ${next('>= :text')}, 1
       UNION ALL
       SELECT ${next('> each_one.word')}, place + 1 FROM each_one WHERE word IS NOT NULL AND ${beginsSo} AND place < ${MOST})
     SELECT word FROM each_one WHERE word IS NOT NULL AND ${beginsSo}`,
  )
}

const KEYS = eachOnce('suggestions.keys', 'key', '')
const VALUES = eachOnce('suggestions.values', 'value', 'AND key = :key')
const has = ({ either }: Words, column: string, part: string) => `${either('instr', 'strpos')}(${column}, ${part}) > 0`
const RECIPES = query(
  'suggestions.recipes',
  shape({ terms: text() }),
  (dialect) =>
    `SELECT terms FROM job_recipe WHERE account_id = :accountId AND ${has(dialect, 'lower(terms)', 'lower(:text)')} LIMIT ${MOST}`,
)

export function* suggest(accountId: string, wish: SuggestionWish, limit: number): Steps<readonly string[]> {
  const { of, text: sought } = wish
  const asked = { accountId, text: sought }
  switch (of) {
    case 'keys':
      return toWords(yield* all(KEYS, asked)).slice(0, limit)
    case 'values':
      return toWords(yield* all(VALUES, { ...asked, key: wish.key })).slice(0, limit)
    case 'classes':
    case 'weights': {
      const recipes = yield* all(RECIPES, asked)
      const named = new Set(recipes.flatMap(({ terms }) => readTerms(terms)[of]))
      return [...named].filter((name) => name.toLowerCase().includes(sought.toLowerCase())).slice(0, limit)
    }
  }
}

function toWords(found: readonly { readonly word: string | null }[]): string[] {
  return found.flatMap(({ word }) => word ?? [])
}
