import './nonce.ts';
import { provideVSCodeDesignSystem, vsCodeButton, vsCodeTextField } from '@vscode/webview-ui-toolkit';

/** Registers the toolkit's elements. The only file that knows the toolkit: it is archived, and may have to go. */
export function registerToolkit(): void {
  provideVSCodeDesignSystem().register(vsCodeButton(), vsCodeTextField());
}
