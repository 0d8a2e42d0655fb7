/**
 * What the words of a filter stand for: recipes with a class, with weights or with a text, labels with a value, titles with a word.
 * Over all accounts, one account more than can be walked says that there are too many.
 */
import type { SummaryFilter } from '../../../domain/jobs/summaries/summary-store.ts'
import { masksWith } from '../rows/jobs/output-types.ts'
import { all, type Steps } from '../statements/operation.ts'
import { both, query, sqliteOnly, type Words } from '../statements/statement.ts'
import { jobLabel, jobRecipe } from '../tables/job-tables.ts'
import { type Dialect, integer, nullable, pick, shape, text } from '../tables/table.ts'
import { type FoundTerms, MAX_RANGES } from './search-plan.ts'
import { MAX_TITLES, type OwnedName, type ServiceTerms, toTerms } from './service-plan.ts'

// An account that labels every job with a key of its own is searched by the first of them only.
const MAX_KEYS = 100
const MAX_VALUES = 20

const has = ({ either }: Words, column: string, part: string) => `${either('instr', 'strpos')}(${column}, ${part}) > 0`
const beginsSo = (column: string) => `substr(${column}, 1, length(:text)) = :text`

/** Recipes of one account, or of all. */
function recipes(name: string, owner: string) {
  const owned = pick(jobRecipe, 'accountId', 'recipe')
  const isAsked = (words: Words, term: string) => `(CAST(${term} AS text) IS NULL OR ${has(words, 'terms', term)})`
  return {
    withTerms: query(
      `search.${name}`,
      owned,
      (words) =>
        `SELECT account_id, recipe FROM job_recipe WHERE ${owner} AND ${isAsked(words, ':classTerm')} AND ${isAsked(words, ':weightsTerm')}`,
    ),
    withText: query(
      `search.${name}_with_text`,
      owned,
      (words) => `SELECT account_id, recipe FROM job_recipe WHERE ${owner}
        AND (${has(words, 'lower(title)', 'lower(:text)')} OR ${has(words, 'lower(terms)', 'lower(:text)')}) LIMIT ${MAX_RANGES}`,
    ),
  }
}
const OWN_RECIPES = recipes('recipes', 'account_id = :accountId')
const ALL_RECIPES = recipes('all_recipes', 'true')

// From one key to the next, and in each from one value with the beginning to the next.
const LABELS = query(
  'search.labels',
  pick(jobLabel, 'key', 'value'),
  `WITH RECURSIVE
     name(key, place) AS (
       SELECT min(key), 1 FROM job_label WHERE account_id = :accountId
       UNION ALL
       SELECT (SELECT min(key) FROM job_label WHERE account_id = :accountId AND key > name.key), place + 1 FROM name
       WHERE name.key IS NOT NULL AND place < ${MAX_KEYS}),
     found(key, value, place) AS (
       SELECT key, (SELECT min(value) FROM job_label WHERE account_id = :accountId AND key = name.key AND value >= :text), 1
       FROM name WHERE key IS NOT NULL
       UNION ALL
       SELECT key, (SELECT min(value) FROM job_label WHERE account_id = :accountId AND key = found.key AND value > found.value),
         place + 1 FROM found
       WHERE ${beginsSo('found.value')} AND place < ${MAX_VALUES})
   SELECT key, value FROM found WHERE ${beginsSo('value')} LIMIT ${MAX_RANGES}`,
)

// The indexes of titles and outputs hold ended jobs only.
const TITLED = {
  sqlite: 'job INDEXED BY job_title_listing WHERE job.title IS NOT NULL AND job.completed_at IS NOT NULL',
  postgres: 'job_done WHERE title IS NOT NULL',
}
const nextTitle = (words: Words, condition: string) =>
  `(SELECT min(title) FROM ${TITLED[words.dialect]} AND account_id = :accountId AND title ${condition})`
// From one title to the next: every one of them up to a bound, and those that begin with the text.
const TITLES = query(
  'search.titles',
  shape({ title: text() }),
  (words) => `
    WITH RECURSIVE
      each_one(title, place) AS (
        SELECT ${nextTitle(words, ">= ''")}, 1
        UNION ALL
        SELECT ${nextTitle(words, '> each_one.title')}, place + 1 FROM each_one WHERE each_one.title IS NOT NULL AND place < ${MAX_TITLES}),
      beginning(title, place) AS (
        SELECT ${nextTitle(words, '>= :text')}, 1
        UNION ALL
        SELECT ${nextTitle(words, '> beginning.title')}, place + 1 FROM beginning
        WHERE ${beginsSo('beginning.title')} AND place < ${MAX_VALUES})
    SELECT title FROM each_one WHERE ${has(words, 'lower(title)', 'lower(:text)')}
    UNION SELECT title FROM beginning WHERE ${beginsSo('title')} LIMIT ${MAX_RANGES}`,
)
// From one title of an account to the next, over all accounts.
const OWNED_TITLES = query(
  'search.all_titles',
  shape({ accountId: text(), title: text() }),
  both({
    sqlite: `
      WITH RECURSIVE each_one(seq, place) AS (
        SELECT (SELECT seq FROM ${TITLED.sqlite} AND account_id > '' ORDER BY account_id, title LIMIT 1), 1
        UNION ALL
        SELECT (SELECT job.seq FROM ${TITLED.sqlite} AND (job.account_id, job.title) > (last.account_id, last.title)
                ORDER BY job.account_id, job.title LIMIT 1), place + 1
        FROM each_one JOIN job AS last ON last.seq = each_one.seq WHERE place < ${MAX_TITLES})
      SELECT account_id, title FROM each_one JOIN job ON job.seq = each_one.seq`,
    postgres: `
      WITH RECURSIVE each_one(account_id, title, place) AS (
        (SELECT account_id, title, 1 FROM ${TITLED.postgres} ORDER BY account_id, title LIMIT 1)
        UNION ALL
        SELECT next.account_id, next.title, place + 1 FROM each_one CROSS JOIN LATERAL (
          SELECT account_id, title FROM ${TITLED.postgres} AND (account_id, title) > (each_one.account_id, each_one.title)
          ORDER BY account_id, title LIMIT 1) AS next
        WHERE place < ${MAX_TITLES})
      SELECT account_id, title FROM each_one`,
  }),
)

// `<>` and not `>` in SQLite: it begins at one lower bound only, and must begin at the condition's.
const nextMask = ({ either }: Words, behind: string) =>
  `(SELECT min(output_types) FROM ${either(
    'job INDEXED BY job_output_listing WHERE output_types <> 0',
    'job_done WHERE output_types > 0',
  )} AND account_id = :accountId AND output_types > ${behind})`
const MASKS = query(
  'search.output_types',
  shape({ mask: nullable(integer()) }),
  (words) => `
    WITH RECURSIVE kind(mask) AS (
      SELECT ${nextMask(words, '0')} UNION ALL SELECT ${nextMask(words, 'kind.mask')} FROM kind WHERE kind.mask IS NOT NULL)
    SELECT mask FROM kind WHERE mask IS NOT NULL`,
)

type SearchedTerms = Pick<SummaryFilter, 'classType' | 'weights' | 'text' | 'outputs'>

export function* findTerms(accountId: string, filter: SearchedTerms): Steps<FoundTerms> {
  const { text: sought, outputs } = filter
  const terms = toTerms(filter)
  const withTerms = terms === null ? null : yield* all(OWN_RECIPES.withTerms, { accountId, ...terms })
  const masks = outputs === null ? null : yield* all(MASKS, { accountId })
  return {
    recipes: withTerms?.map(({ recipe }) => recipe) ?? null,
    text: sought === null ? null : yield* findText(accountId, sought),
    masks:
      outputs === null || masks === null
        ? null
        : masksWith(
            outputs.type,
            masks.map(({ mask }) => mask ?? 0),
          ),
  }
}

function* findText(accountId: string, sought: string): Steps<FoundTerms['text']> {
  const values = { accountId, text: sought }
  const withText = yield* all(OWN_RECIPES.withText, values)
  const labels = yield* all(LABELS, values)
  const titles = yield* all(TITLES, values)
  return {
    recipes: withText.map(({ recipe }) => recipe),
    labels: labels.map(({ key, value }) => [key, value]),
    titles: titles.map(({ title }) => title),
  }
}

const accountIds = shape({ id: text() })
// One look per account: there are far more labels than accounts.
const LABELLED = query(
  'search.labelled_accounts',
  accountIds,
  `SELECT id FROM account WHERE (
     SELECT key FROM job_label WHERE account_id = account.id AND key = :key AND value = :value LIMIT 1) IS NOT NULL LIMIT ${MAX_RANGES + 1}`,
)
const ENGINE_USERS = query(
  'search.engine_users',
  accountIds,
  sqliteOnly(`SELECT id FROM account WHERE EXISTS (
    SELECT 1 FROM job INDEXED BY job_engine_listing WHERE engine_id IS NOT NULL AND completed_at IS NOT NULL
      AND account_id = account.id AND engine_id = :engine) LIMIT ${MAX_RANGES + 1}`),
)
const WAITING = query(
  'search.waiting_accounts',
  accountIds,
  sqliteOnly(`SELECT id FROM account INDEXED BY account_waiting WHERE queued > 0 LIMIT ${MAX_RANGES + 1}`),
)

export function* findServiceTerms(dialect: Dialect, filter: SummaryFilter): Steps<ServiceTerms> {
  const { text: sought, metadata, statuses, engine } = filter
  const [label] = Object.entries(metadata)
  const terms = toTerms(filter)
  const toNames = (rows: readonly { readonly accountId: string; readonly recipe: string }[]) =>
    rows.map(({ accountId, recipe }): OwnedName => [accountId, recipe])
  const isWalked = statuses?.includes('queued') === true || terms !== null || sought !== null
  const labelled = label === undefined ? [] : yield* all(LABELLED, { key: label[0], value: label[1] })
  const waiting = isWalked ? yield* all(WAITING) : []
  // Nearly all jobs of a service without other engines are of the built-in one: in SQLite they have no index of the whole service.
  const users = dialect === 'sqlite' && engine === 'embedded' ? yield* all(ENGINE_USERS, { engine }) : null
  return {
    recipes: terms === null ? null : toNames(yield* all(ALL_RECIPES.withTerms, terms)),
    text:
      sought === null
        ? null
        : {
            recipes: toNames(yield* all(ALL_RECIPES.withText, { text: sought })),
            titles: yield* findOwnedTitles(sought),
          },
    labelled: labelled.map(({ id }) => id),
    engineUsers: users?.map(({ id }) => id) ?? null,
    waiting: waiting.map(({ id }) => id),
  }
}

function* findOwnedTitles(sought: string): Steps<OwnedName[]> {
  const wanted = sought.toLowerCase()
  const titles = yield* all(OWNED_TITLES)
  return titles.flatMap(({ accountId, title }) => (title.toLowerCase().includes(wanted) ? [[accountId, title]] : []))
}
