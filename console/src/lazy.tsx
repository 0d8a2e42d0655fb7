/** A component that is loaded when it is first shown. A file that cannot be had (a new build took it away) says so and offers a reload. */
import { Component, type ComponentChildren, type ComponentType } from 'preact'
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

interface BoundaryProps {
  /** Another mark is another thing to draw: it is tried again. */
  readonly mark: string
  readonly instead: (error: unknown) => ComponentChildren
  readonly children: ComponentChildren
}

interface BoundaryState {
  readonly failedAt: string | null
  readonly error: unknown
}

/** What cannot be drawn does not take the rest of the page with it: something else stands in its place. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failedAt: null, error: null }

  override componentDidCatch(error: unknown): void {
    this.setState({ failedAt: this.props.mark, error })
  }

  override render() {
    const { mark, instead, children } = this.props
    return this.state.failedAt === mark ? instead(this.state.error) : children
  }
}

/** The thing itself, as the service gave it. */
export function RawJson({ value }: { readonly value: unknown }) {
  return <code class="raw-json">{JSON.stringify(value)?.slice(0, 4000) ?? 'nothing'}</code>
}
