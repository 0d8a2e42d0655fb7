/** A component that is loaded when it is first shown. A file that cannot be had (a new build took it away) says so and offers a reload. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null
  return function Lazy(props: Props) {
    const [state, setState] = useState<'loading' | 'ready' | 'missing'>(loaded === null ? 'loading' : 'ready')
    useEffect(() => {
      if (loaded !== null) return
      load().then(
        (component) => {
          loaded = component
          setState('ready')
        },
        () => setState('missing'),
      )
    }, [])
    if (state === 'missing')
      return (
        <div class="page">
          <p role="alert">This part of the page could not be loaded: there may be a new version of it.</p>
          <button type="button" class="button" onClick={() => window.location.reload()}>
            Reload
          </button>
        </div>
      )
    const Ready = loaded
    return Ready === null ? <div class="page" aria-busy="true" /> : <Ready {...props} />
  }
}
