/**
 * News of runs for a client that knows one active run, as ComfyUI's editor does. Several of its runs may be under way at once, on
 * several workers or engines. It is told of them one after the other, in the order in which they begin: what a later one says
 * is kept until the earlier one has ended, and then told in one go. Previews and steps of a run whose turn has not come are left out.
 */

/** `passing`: of no use later. `last`: the run has ended. */
type NewsKind = 'passing' | 'lasting' | 'last'

export interface News<Write> {
  readonly write: Write
  readonly kind: NewsKind
}

interface RunNews {
  readonly jobId: string
  readonly accountId: string
  readonly clientId: string
}

interface OneAtATime<Write> {
  /** Sends the message now, or when it is this run's turn. */
  tell(run: RunNews, news: News<Write>): void
  /** The run has no further messages. */
  leave(jobId: string): void
  /** The account has no open socket any more. */
  forget(accountId: string): void
}

interface Line<Write> {
  active: RunNews
  /** In the order of their beginnings, with what they have said. */
  readonly waiting: Map<string, { readonly run: RunNews; readonly kept: News<Write>[] }>
}

// A graph of thousands of nodes; of a run that says more, its beginning is dropped.
const MAX_KEPT = 10_000

export function createOneAtATime<Write>(say: (run: RunNews, write: Write) => void): OneAtATime<Write> {
  const lines = new Map<string, Line<Write>>()
  const keyOf = ({ accountId, clientId }: RunNews) => `${accountId}\n${clientId}`

  function keep({ waiting }: Line<Write>, run: RunNews, news: News<Write>): void {
    if (news.kind === 'passing') return
    const kept: News<Write>[] = waiting.get(run.jobId)?.kept ?? []
    kept.push(news)
    if (kept.length > MAX_KEPT) kept.shift()
    waiting.set(run.jobId, { run, kept })
  }

  /** The turn of the next run; again when that has ended already. */
  function advance(key: string, line: Line<Write>): void {
    for (const [jobId, { run, kept }] of line.waiting) {
      line.waiting.delete(jobId)
      line.active = run
      for (const { write } of kept) say(run, write)
      if (kept.at(-1)?.kind !== 'last') return
    }
    lines.delete(key)
  }

  return {
    tell(run, news) {
      const key = keyOf(run)
      const line = lines.get(key) ?? { active: run, waiting: new Map() }
      lines.set(key, line)
      if (line.active.jobId !== run.jobId) keep(line, run, news)
      else {
        say(run, news.write)
        if (news.kind === 'last') advance(key, line)
      }
    },
    leave(jobId) {
      for (const [key, line] of lines) {
        line.waiting.delete(jobId)
        if (line.active.jobId === jobId) advance(key, line)
      }
    },
    forget(accountId) {
      for (const [key, { active }] of lines) if (active.accountId === accountId) lines.delete(key)
    },
  }
}
