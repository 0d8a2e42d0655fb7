/** What the words of a filter stand for over all accounts. One account more than can be walked says that there are too many. */
import type { DatabaseSync } from 'node:sqlite'
import type { SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { MAX_RANGES } from '../../../search/search-plan.ts'
import { MAX_TITLES, type OwnedName, type ServiceTerms, toTerms } from '../../../search/service-plan.ts'
import { prepareRows } from '../statement.ts'

export function prepareFindServiceTerms(
  database: DatabaseSync,
): (filter: Omit<SummaryFilter, 'since' | 'until'>) => ServiceTerms {
  const withTerms = prepareRows<OwnedName>(
    database,
    `SELECT account_id, recipe FROM job_recipe
     WHERE (?1 IS NULL OR instr(terms, ?1) > 0) AND (?2 IS NULL OR instr(terms, ?2) > 0)`,
  )
  const withText = prepareRows<OwnedName>(
    database,
    `SELECT account_id, recipe FROM job_recipe
     WHERE instr(lower(title), lower(?1)) > 0 OR instr(lower(terms), lower(?1)) > 0 LIMIT ${MAX_RANGES}`,
  )
  const nextTitle = prepareRows<OwnedName>(
    database,
    `SELECT account_id, title FROM job INDEXED BY job_title_listing
     WHERE title IS NOT NULL AND completed_at IS NOT NULL AND (account_id, title) > (?1, ?2) ORDER BY account_id, title LIMIT 1`,
  )
  const labelled = prepareRows<[string]>(
    database,
    `SELECT id FROM account WHERE EXISTS (
       SELECT 1 FROM job_label WHERE account_id = account.id AND key = ?1 AND value = ?2) LIMIT ${MAX_RANGES + 1}`,
  )
  const users = prepareRows<[string]>(
    database,
    `SELECT id FROM account WHERE EXISTS (
       SELECT 1 FROM job INDEXED BY job_engine_listing WHERE engine_id IS NOT NULL AND completed_at IS NOT NULL
         AND account_id = account.id AND engine_id = ?1) LIMIT ${MAX_RANGES + 1}`,
  )
  const waiting = prepareRows<[string]>(
    database,
    `SELECT id FROM account INDEXED BY account_waiting WHERE queued > 0 LIMIT ${MAX_RANGES + 1}`,
  )

  /** From one title to the next. */
  function findTitles(text: string): OwnedName[] {
    const found: OwnedName[] = []
    const wanted = text.toLowerCase()
    let next = nextTitle.get('', '')
    for (let place = 0; next !== undefined && place < MAX_TITLES; place += 1) {
      if (next[1].toLowerCase().includes(wanted)) found.push(next)
      next = nextTitle.get(...next)
    }
    return found
  }

  return (filter) => {
    const { text, metadata, statuses, engine } = filter
    const [label] = Object.entries(metadata)
    const terms = toTerms(filter)
    return {
      recipes: terms === null ? null : withTerms.all(...terms),
      text: text === null ? null : { recipes: withText.all(text), titles: findTitles(text) },
      labelled: label === undefined ? [] : labelled.all(...label).map(([id]) => id),
      // Nearly all jobs of a service without other engines are of the built-in one: they have no index of the whole service.
      engineUsers: engine === 'embedded' ? users.all(engine).map(([id]) => id) : null,
      waiting:
        statuses?.includes('queued') === true || terms !== null || text !== null ? waiting.all().map(([id]) => id) : [],
    }
  }
}
