/** What cannot be drawn does not take the rest of the page with it: something else stands in its place. */
import { Component, type ComponentChildren } from 'preact'

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
