/**
 * The transport between two processes for their live links: frames of bytes, in order, until one side closes. It may break silently
 * at any moment, so its users check now and then whether the other side is still there.
 */
export interface Peer {
  /** The id of the process. */
  readonly id: string
  /** Where its internal listener is reached; null: nowhere. */
  readonly address: string | null
}

export interface Channel {
  /** Never throws and never waits. */
  send(frame: Uint8Array): void
  /** Harmless when called twice. */
  close(): void
}

export interface ChannelEvents {
  onFrame(frame: Uint8Array): void
  /** Once; nothing follows. */
  onClosed(): void
}

export interface Transport extends AsyncDisposable {
  /** The largest frame that it carries for sure. */
  readonly maxFrameBytes: number
  /** Whether this peer can be dialled at all. */
  reaches(peer: Peer): boolean
  /** Rejects when the peer cannot be reached, or is not who it should be. */
  dial(peer: Peer, events: ChannelEvents, signal: AbortSignal): Promise<Channel>
  /** Called once, before anything is dialled: what becomes of channels that others open. */
  accept(open: (channel: Channel, from: string) => ChannelEvents): void
}
