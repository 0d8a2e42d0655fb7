/** A question that is asked again every few seconds while somebody looks: nothing tells of these changes yet. */
import { useEffect } from 'preact/hooks'
import { isWatched } from '../../state/live/presence.ts'
import { type Resource, useResource } from '../../state/resource.ts'

const EVERY_MS = 4000

export function usePolled<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>): Resource<Value> {
  const resource = useResource(key, load)
  useEffect(() => {
    const timer = setInterval(() => {
      if (isWatched.value) resource.reload()
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [resource])
  return resource
}
