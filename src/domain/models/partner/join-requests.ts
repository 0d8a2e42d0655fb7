/**
 * Several requests that mean the same call wait for it together: a node whose connection broke may be back before anybody here
 * knows that it was gone. Whoever waits is there as long as one of them is.
 */
import type { Listener } from '../calls/live-calls.ts'

type JoinRequests<Answer> = (
  key: string,
  listener: Listener,
  begin: (listener: Listener) => Promise<Answer>,
) => Promise<Answer>

interface Group<Answer> {
  readonly answer: Promise<Answer>
  readonly left: AbortController
  present: number
}

export function createJoinRequests<Answer>(): JoinRequests<Answer> {
  const groups = new Map<string, Group<Answer>>()

  function enter(group: Group<Answer>, listener: Listener): void {
    group.present += 1
    const leave = () => {
      group.present -= 1
      if (group.present === 0) group.left.abort()
    }
    if (listener.left?.aborted) leave()
    else listener.left?.addEventListener('abort', leave, { once: true })
  }

  function open(key: string, begin: (listener: Listener) => Promise<Answer>): Group<Answer> {
    const left = new AbortController()
    const listener = { isConnected: () => !left.signal.aborted, left: left.signal }
    const answer = begin(listener).finally(() => {
      if (groups.get(key) === group) groups.delete(key)
    })
    const group: Group<Answer> = { answer, left, present: 0 }
    groups.set(key, group)
    return group
  }

  return (key, listener, begin) => {
    const known = groups.get(key)
    const group = known === undefined || known.left.signal.aborted ? open(key, begin) : known
    enter(group, listener)
    return group.answer
  }
}
