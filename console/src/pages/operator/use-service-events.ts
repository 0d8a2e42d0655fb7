/** Asks a question anew whenever something happens in the service, at most once a second, as long as somebody looks. */
import { useEffect } from 'preact/hooks'
import { isWatched } from '../../state/live/presence.ts'
import { openStream } from '../../state/live/stream.ts'
import type { Resource } from '../../state/resource.ts'

const PACE_MS = 1000

export function useServiceEvents(resource: Resource<unknown>): void {
  const isSeen = isWatched.value
  useEffect(() => {
    if (!isSeen) return
    let due: ReturnType<typeof setTimeout> | undefined
    const close = openStream({
      path: '/admin/v1/events',
      onFrame: () => {
        due ??= setTimeout(() => {
          due = undefined
          resource.reload()
        }, PACE_MS)
      },
      onState: () => {},
    })
    return () => {
      close()
      clearTimeout(due)
    }
  }, [resource, isSeen])
}
