/**
 * What a question came to: nothing yet, an answer, a refusal. Data that was there stays when a later question fails, with a line that
 * says from when it is.
 */
import type { ComponentChildren } from 'preact'
import { zoneName } from '../state/preferences.ts'
import type { Resource } from '../state/resource.ts'
import { formatTime } from '../text/format.ts'
import { ErrorBox } from './error-box.tsx'

interface LoadedProps<Value> {
  readonly resource: Resource<Value>
  readonly skeleton: ComponentChildren
  readonly children: (value: Value) => ComponentChildren
}

export function Loaded<Value>({ resource, skeleton, children }: LoadedProps<Value>) {
  const { data, error, at, reload } = resource
  if (data.value === null) {
    if (error.value === null) return <div aria-busy="true">{skeleton}</div>
    return <ErrorBox error={error.value} onRetry={reload} />
  }
  return (
    <>
      {error.value !== null && (
        <p class="stale-line" role="status">
          {error.value.status === null ? 'The service cannot be reached' : error.value.message}: shown as of{' '}
          {formatTime(at.value ?? 0, zoneName())}.
        </p>
      )}
      {children(data.value)}
    </>
  )
}
